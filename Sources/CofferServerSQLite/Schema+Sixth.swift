extension Schema {
  /// What setting the clock back must not undo, and when devices sent what they sent.
  static let sixth = """
    -- The latest end of the assertions whose ids were forgotten, in seconds since 1970.
    ALTER TABLE device ADD COLUMN assertions_forgotten INTEGER NOT NULL DEFAULT 0;
    -- By the device's clock, in milliseconds since 1970. NULL where it did not say.
    ALTER TABLE device_log ADD COLUMN sent_at INTEGER;
    """
}
