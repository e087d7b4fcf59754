extension Schema {
  /// Sessions, invitations, the audit, approvals with states, rules and their like, devices' state and commands. What
  /// the first version had stays as it was: its apps are approved ones, and its tokens have no name and all scopes.
  static let second = """
    ALTER TABLE api_token ADD COLUMN name TEXT NOT NULL DEFAULT '';
    -- A JSON array; NULL is all that the role may do.
    ALTER TABLE api_token ADD COLUMN scopes TEXT;
    CREATE INDEX api_token_by_tenant ON api_token (tenant);

    ALTER TABLE administrator ADD COLUMN sealed_one_time_secret BLOB;
    ALTER TABLE administrator ADD COLUMN pending_one_time_secret BLOB;
    ALTER TABLE administrator ADD COLUMN last_one_time_step INTEGER NOT NULL DEFAULT 0;

    CREATE TABLE session (
      hash BLOB PRIMARY KEY,
      id TEXT NOT NULL UNIQUE,
      administrator TEXT NOT NULL REFERENCES administrator ON DELETE CASCADE,
      created_at INTEGER NOT NULL,
      last_seen_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX session_by_administrator ON session (administrator);

    CREATE TABLE invitation (
      hash BLOB PRIMARY KEY,
      id TEXT NOT NULL UNIQUE,
      -- NULL in the set-up link of a server that nobody administers yet.
      tenant TEXT REFERENCES tenant,
      email TEXT COLLATE NOCASE,
      role TEXT NOT NULL,
      created_at INTEGER NOT NULL,
      expires_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX invitation_by_tenant ON invitation (tenant);

    CREATE TABLE kept_request (
      key BLOB PRIMARY KEY,
      tenant TEXT NOT NULL REFERENCES tenant,
      body BLOB NOT NULL,
      sealed_answer BLOB NOT NULL,
      expires_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX kept_request_by_expiry ON kept_request (expires_at);

    CREATE TABLE audit (
      tenant TEXT NOT NULL REFERENCES tenant,
      number INTEGER NOT NULL,
      -- The exact bytes that are hashed.
      entry BLOB NOT NULL,
      hash BLOB NOT NULL,
      PRIMARY KEY (tenant, number)
    ) STRICT, WITHOUT ROWID;
    CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit is only appended to'); END;
    CREATE TRIGGER audit_is_never_shortened BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit is only appended to'); END;

    ALTER TABLE app ADD COLUMN state TEXT NOT NULL DEFAULT 'approved';
    ALTER TABLE app ADD COLUMN expires_at INTEGER;
    ALTER TABLE app ADD COLUMN details TEXT NOT NULL DEFAULT '{"approvers":[]}';

    -- Rules, classifications, file types, groups and drafts: JSON by kind and id.
    CREATE TABLE resource (
      number INTEGER PRIMARY KEY AUTOINCREMENT,
      tenant TEXT NOT NULL REFERENCES tenant,
      kind TEXT NOT NULL,
      id TEXT NOT NULL,
      body TEXT NOT NULL,
      UNIQUE (tenant, kind, id)
    ) STRICT;

    ALTER TABLE tenant ADD COLUMN grace TEXT NOT NULL DEFAULT '{"blockAfter":1209600,"warnAfter":259200}';
    ALTER TABLE tenant ADD COLUMN four_eyes INTEGER NOT NULL DEFAULT 0;
    -- When the first approval in force ends.
    ALTER TABLE tenant ADD COLUMN policy_changes_at INTEGER;
    ALTER TABLE tenant ADD COLUMN delegations TEXT NOT NULL DEFAULT '[]';
    ALTER TABLE tenant ADD COLUMN root_exported_at INTEGER;

    ALTER TABLE device ADD COLUMN last_seen_at INTEGER;
    ALTER TABLE device ADD COLUMN report TEXT;
    ALTER TABLE device ADD COLUMN reported_at INTEGER;
    ALTER TABLE device ADD COLUMN device_groups TEXT NOT NULL DEFAULT '[]';

    CREATE TABLE command (
      number INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      tenant TEXT NOT NULL REFERENCES tenant,
      -- Kept when the device is gone: it is the device's history.
      device TEXT NOT NULL,
      kind TEXT NOT NULL,
      state TEXT NOT NULL,
      document TEXT NOT NULL,
      created_by TEXT NOT NULL,
      created_at INTEGER NOT NULL,
      expires_at INTEGER NOT NULL,
      receipt TEXT,
      answered_at INTEGER
    ) STRICT;
    CREATE INDEX command_by_device ON command (tenant, device, number);

    CREATE TABLE device_decision (
      device TEXT NOT NULL REFERENCES device ON DELETE CASCADE,
      number INTEGER NOT NULL,
      entry TEXT NOT NULL,
      received_at INTEGER NOT NULL,
      PRIMARY KEY (device, number)
    ) STRICT, WITHOUT ROWID;
    """
}
