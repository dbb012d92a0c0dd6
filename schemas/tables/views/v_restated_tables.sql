CREATE OR REPLACE VIEW default.v_restated_tables
(
    time DateTime64(9, 'UTC') COMMENT 'When it was restated',
    run LowCardinality(String) COMMENT 'Which replay did it',
    view LowCardinality(String) COMMENT 'View that was replayed',
    table LowCardinality(String) COMMENT 'Table whose rows were replaced',
    added Int64 COMMENT 'Rows of which there was none before',
    removed Int64 COMMENT 'Rows of which there is none any more',
    changed Int64 COMMENT 'Rows with other values',
    renewed Int64 COMMENT 'Rows with the same values by another version of the processor; they are no restatements',
    listed Int64 COMMENT 'How many of the added, removed and changed rows are in v_restatements: the first ones by time',
    unlisted Int64 COMMENT 'How many are not, because there were more than are listed',
    published DateTime64(9, 'UTC') COMMENT 'When the replay began to record it. The rows were replaced when the replay ended, some time behind that'
)
AS SELECT time, run, view_name AS view, table_name AS table, added, removed, changed, renewed, listed, added + removed + changed - listed AS unlisted, time AS published
FROM {database}.restated_tables FINAL
COMMENT 'How many rows of each table replays restated, also of those that are not listed one by one'
