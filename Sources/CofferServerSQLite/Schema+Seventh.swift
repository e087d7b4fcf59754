extension Schema {
  /// How far a device's decisions came without a gap, so that nobody looks through all of them to know; and nothing that finds
  /// devices by their keys: they say which they are.
  static let seventh = """
    ALTER TABLE device ADD COLUMN decisions_complete INTEGER NOT NULL DEFAULT 0;
    DROP INDEX device_by_key;
    """
}
