extension Schema {
  /// The logs that devices uploaded by order.
  static let fourth = """
    CREATE TABLE device_log (
      device TEXT PRIMARY KEY REFERENCES device ON DELETE CASCADE,
      -- A JSON array of lines.
      lines TEXT NOT NULL,
      received_at INTEGER NOT NULL
    ) STRICT;
    """
}
