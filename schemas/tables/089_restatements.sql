-- +goose Up
-- Rows of tables that were added, removed or changed after they may have been read. key is a JSON object of the columns of the key. Only
-- those of the attempt that restated_tables names have come to be.
CREATE TABLE IF NOT EXISTS restatements
(
    time          DateTime64(9, 'UTC'),
    run           LowCardinality(String),
    attempt       UInt32,
    table_name    LowCardinality(String),
    coin_id       LowCardinality(String),
    event_time    DateTime64(9, 'UTC'),
    key           String,
    view_name     LowCardinality(String),
    kind          LowCardinality(String),
    cause         LowCardinality(String),
    logic_before  UInt32,
    logic_after   UInt32,
    before Nested (name LowCardinality(String), value String),
    after Nested (name LowCardinality(String), value String),
    others        Array(LowCardinality(String)),
    digest_before String,
    digest_after  String,
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (time, run, attempt, table_name, coin_id, event_time, key);

-- How many rows of a table a replay or an import restated, written when they were.
CREATE TABLE IF NOT EXISTS restated_tables
(
    run           LowCardinality(String),
    table_name    LowCardinality(String),
    attempt       UInt32,
    time          DateTime64(9, 'UTC'),
    view_name     LowCardinality(String),
    added         Int64,
    removed       Int64,
    changed       Int64,
    renewed       Int64,
    listed        Int64,
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (run, table_name);

-- +goose Down
DROP TABLE restatements;
DROP TABLE restated_tables;
