// The schema of the store, as the list of steps that led to it. A released step is never edited; a new one is added.

export type Migration = string

export const migrations: readonly Migration[] = [
  `
  CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

  CREATE TABLE users (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    username TEXT NOT NULL UNIQUE COLLATE NOCASE,
    email TEXT NOT NULL,
    password_hash TEXT NOT NULL,
    role TEXT NOT NULL,
    permissions TEXT NOT NULL,
    is_active INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    last_login_at TEXT
  ) STRICT;

  CREATE TABLE user_deployments (
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    deployment_name TEXT NOT NULL,
    access_level TEXT NOT NULL,
    PRIMARY KEY (user_id, deployment_name)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX user_deployments_by_name ON user_deployments (deployment_name);

  CREATE TABLE api_keys (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER REFERENCES users (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    key_hash TEXT NOT NULL UNIQUE,
    key_prefix TEXT NOT NULL,
    role TEXT NOT NULL,
    permissions TEXT NOT NULL,
    deployments TEXT NOT NULL,
    is_active INTEGER NOT NULL,
    expires_at TEXT,
    last_used_at TEXT,
    created_at TEXT NOT NULL
  ) STRICT;
  CREATE INDEX api_keys_by_user ON api_keys (user_id);

  CREATE TABLE credentials (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    type TEXT NOT NULL,
    credentials TEXT NOT NULL,
    shared_with TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE registries (
    slug TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    type TEXT NOT NULL,
    insecure INTEGER NOT NULL,
    credential_id TEXT REFERENCES credentials (id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX registries_by_credential ON registries (credential_id);

  CREATE TABLE trusted_files (
    deployment_name TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE compose_models (
    folder TEXT PRIMARY KEY,
    key TEXT NOT NULL,
    sealed TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    operation TEXT NOT NULL,
    action TEXT NOT NULL,
    resource_type TEXT NOT NULL,
    resource_id TEXT,
    deployment TEXT,
    actor TEXT NOT NULL,
    is_job INTEGER NOT NULL,
    plan_id TEXT,
    request TEXT NOT NULL,
    steps TEXT NOT NULL,
    status TEXT NOT NULL,
    progress INTEGER NOT NULL,
    phase TEXT NOT NULL,
    error TEXT,
    answer TEXT,
    created_at TEXT NOT NULL,
    started_at TEXT,
    completed_at TEXT
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX runs_by_time ON runs (is_job, created_at);
  CREATE INDEX runs_unfinished ON runs (status) WHERE status IN ('pending', 'running');

  CREATE TABLE run_steps (
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    state TEXT NOT NULL,
    before TEXT,
    PRIMARY KEY (run_id, position)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE plans (
    id TEXT PRIMARY KEY,
    operation TEXT NOT NULL,
    action TEXT NOT NULL,
    status TEXT NOT NULL,
    resource_type TEXT NOT NULL,
    resource_id TEXT,
    deployments TEXT NOT NULL,
    shown_request TEXT NOT NULL,
    changes TEXT NOT NULL,
    files TEXT NOT NULL,
    digest TEXT NOT NULL,
    sealed TEXT,
    created_at TEXT NOT NULL,
    created_by TEXT NOT NULL,
    applied_at TEXT,
    applied_by TEXT,
    error TEXT
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX plans_by_time ON plans (created_at);

  CREATE TABLE kept_answers (
    key TEXT PRIMARY KEY,
    request TEXT NOT NULL,
    status INTEGER NOT NULL,
    answer TEXT NOT NULL,
    created_at TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX kept_answers_by_time ON kept_answers (created_at);

  CREATE TABLE audit_events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    actor_type TEXT NOT NULL,
    actor_id INTEGER,
    actor_name TEXT NOT NULL,
    action TEXT NOT NULL,
    resource_type TEXT NOT NULL,
    resource_id TEXT,
    success INTEGER NOT NULL,
    status_code INTEGER NOT NULL,
    client_ip TEXT,
    user_agent TEXT,
    request_id TEXT NOT NULL,
    duration_ms INTEGER NOT NULL,
    details TEXT NOT NULL
  ) STRICT;
  CREATE INDEX audit_by_time ON audit_events (time);
  CREATE INDEX audit_by_action ON audit_events (action);
  CREATE INDEX audit_by_actor ON audit_events (actor_id);
  CREATE INDEX audit_by_resource ON audit_events (resource_id);
  CREATE INDEX audit_by_client ON audit_events (client_ip);

  CREATE TABLE audit_days (
    day TEXT PRIMARY KEY,
    first_id INTEGER NOT NULL,
    last_id INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TRIGGER audit_day AFTER INSERT ON audit_events BEGIN
    INSERT INTO audit_days (day, first_id, last_id) VALUES (substr(new.time, 1, 10), new.id, new.id)
      ON CONFLICT DO UPDATE SET first_id = min(first_id, new.id), last_id = max(last_id, new.id);
  END;

  CREATE TABLE audit_counts (
    day TEXT NOT NULL,
    action TEXT NOT NULL,
    actor_type TEXT NOT NULL,
    actor_name TEXT NOT NULL,
    events INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    PRIMARY KEY (day, action, actor_type, actor_name)
  ) STRICT, WITHOUT ROWID;
  `,
]
