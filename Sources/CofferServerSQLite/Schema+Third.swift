extension Schema {
  /// Who made tokens, invitations and codes, as far as the audit says; no way around the audit's triggers; and what is
  /// asked for each second.
  static let third = """
    -- An actor, as in the audit. NULL where nobody noted it.
    ALTER TABLE api_token ADD COLUMN created_by TEXT;
    ALTER TABLE invitation ADD COLUMN created_by TEXT;
    ALTER TABLE enrollment ADD COLUMN created_by TEXT;
    CREATE TEMP TABLE maker (id TEXT PRIMARY KEY, actor TEXT NOT NULL);
    INSERT OR IGNORE INTO maker
      SELECT json_extract(CAST(entry AS TEXT), '$.subject'), json_extract(CAST(entry AS TEXT), '$.actor') FROM audit
      WHERE json_extract(CAST(entry AS TEXT), '$.action')
        IN ('token.created', 'invitation.created', 'enrollment.created');
    UPDATE api_token SET created_by = (SELECT actor FROM maker WHERE maker.id = api_token.id);
    UPDATE invitation SET created_by = (SELECT actor FROM maker WHERE maker.id = invitation.id);
    UPDATE enrollment SET created_by = (SELECT actor FROM maker WHERE maker.id = enrollment.id);
    UPDATE invitation SET created_by = 'operator' WHERE tenant IS NULL;
    DROP TABLE maker;

    -- INSERT OR REPLACE removes a row without the trigger of DELETE.
    CREATE TRIGGER audit_is_never_replaced BEFORE INSERT ON audit
    WHEN EXISTS (SELECT 1 FROM audit WHERE tenant = NEW.tenant AND number = NEW.number)
    BEGIN SELECT RAISE(ABORT, 'the audit is only appended to'); END;

    CREATE INDEX tenant_by_policy_change ON tenant (policy_changes_at) WHERE policy_changes_at IS NOT NULL;
    """
}
