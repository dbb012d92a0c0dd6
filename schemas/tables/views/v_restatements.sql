CREATE OR REPLACE VIEW default.v_restatements
(
    time DateTime64(9, 'UTC') COMMENT 'When it was restated; by a source, when its later statement was received',
    run LowCardinality(String) COMMENT 'Which replay did it; of a source, topic/partition/offset of its later statement in the log',
    cause LowCardinality(String) COMMENT 'correction ID: by a replay that applies corrections, see v_corrections. logic N: by version N of the processor. symbols: by another coin table. replay: the log gives another row than there was. source NAME: the source or venue stated the past otherwise later. import SHA256: an imported file did, see v_imports',
    view LowCardinality(String) COMMENT 'View that was replayed; reference or backfill where a source stated something else',
    table LowCardinality(String) COMMENT 'Table of the row',
    kind LowCardinality(String) COMMENT 'changed; added: there was no such row before; removed: there is none any more',
    coin_id LowCardinality(String) COMMENT 'Canonical id of the coin; empty where the row is not of one coin',
    event_time DateTime64(9, 'UTC') COMMENT 'What the row is of',
    key String COMMENT 'What the row is known by: a JSON object of the columns of the key',
    before Map(LowCardinality(String), String) COMMENT 'Values before, as exact text: of a changed row those that differ, of a removed one all. A value that was not known is left out',
    after Map(LowCardinality(String), String) COMMENT 'Values after; of an added row all',
    others Array(LowCardinality(String)) COMMENT 'Columns with lists that differ too, of which no value is recorded',
    logic_before UInt32 COMMENT 'Version of the processor that made the row before; 0 for none',
    logic_after UInt32 COMMENT 'Version that made the row after; 0 for none',
    digest_before String COMMENT 'Hash of all values before, in hexadecimal; empty for none',
    digest_after String COMMENT 'Hash of all values after; empty for none',
    published DateTime64(9, 'UTC') COMMENT 'When the replay began to record it; the rows were replaced when the replay ended, some time behind that. By a source, when its later statement was received; the row was replaced seconds behind that'
)
AS SELECT time, run, cause, view_name AS view, table_name AS table, kind, coin_id, event_time, key,
    CAST(arrayZip(before.name, before.value), 'Map(LowCardinality(String), String)') AS before,
    CAST(arrayZip(after.name, after.value), 'Map(LowCardinality(String), String)') AS after,
    others, logic_before, logic_after, digest_before, digest_after, time AS published
FROM {database}.restatements FINAL
WHERE attempt = 0 OR (run, attempt, table_name) IN (SELECT run, attempt, table_name FROM {database}.restated_tables FINAL)
COMMENT 'Rows that a replay, or another statement of their source, added, removed or changed after they may have been read, with their values before and after'
