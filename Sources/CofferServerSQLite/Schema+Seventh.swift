extension Schema {
  /// How far a device's decisions came without a gap, so that taking one looks through no more than came since; and which apps
  /// are approved, until when, without reading what of. The index of devices by their keys is for servers of the version before, which may
  /// run beside this one.
  static let seventh = """
    ALTER TABLE device ADD COLUMN decisions_complete INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX app_by_state ON app (tenant, state, expires_at);
    """
}
