extension Schema {
  /// Orders have a number of their own for each device, which is what a device hears: the other one counts over all
  /// companies.
  static let fifth = """
    ALTER TABLE command ADD COLUMN position INTEGER NOT NULL DEFAULT 0;
    UPDATE command SET position = (
      SELECT count(*) FROM command AS earlier
      WHERE earlier.tenant = command.tenant AND earlier.device = command.device AND earlier.number <= command.number);
    CREATE UNIQUE INDEX command_by_position ON command (tenant, device, position);
    """
}
