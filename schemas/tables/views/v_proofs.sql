CREATE OR REPLACE VIEW default.v_proofs
(
    replay UInt32 COMMENT 'Number of the replay',
    view LowCardinality(String) COMMENT 'What was folded again: all, or one of the views that replay --view takes',
    verify Bool COMMENT 'Whether it only compared; else the rebuilt tables took the place of the live ones',
    state LowCardinality(String) COMMENT 'done; aborted; or the step that it is in: preparing, folding, exchanging, aborting',
    from_time Nullable(DateTime64(9, 'UTC')) COMMENT 'Begin of what was compared; NULL: from the first record',
    to_time Nullable(DateTime64(9, 'UTC')) COMMENT 'End of it; NULL: to the end of the log',
    rows Nullable(Int64) COMMENT 'Rows that were compared, by key; NULL without a comparison that ended',
    differing Nullable(Int64) COMMENT 'Of them, those under which the live and the rebuilt row differed: 0 proves the view',
    outside Nullable(Int64) COMMENT 'Live rows that were not compared: their causes are in neither log nor archive, or out of the time',
    seconds Nullable(Float64) COMMENT 'How long the comparison took, of the process that ended it',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: when this state was entered, by the clock of the store'
)
AS SELECT generation AS replay, JSONExtractString(r.record, 'view') AS view, JSONExtractBool(r.record, 'verify') AS verify, state,
    parseDateTime64BestEffortOrNull(JSONExtractString(r.record, 'from'), 9, 'UTC') AS from_time, parseDateTime64BestEffortOrNull(JSONExtractString(r.record, 'to'), 9, 'UTC') AS to_time,
    JSONExtract(r.record, 'result', 'compared', 'Nullable(Int64)') AS rows, JSONExtract(r.record, 'result', 'differing', 'Nullable(Int64)') AS differing,
    JSONExtract(r.record, 'result', 'outside', 'Nullable(Int64)') AS outside, JSONExtract(r.record, 'result', 'seconds', 'Nullable(Float64)') AS seconds,
    toDateTime64(r.written, 9, 'UTC') AS published
FROM {database}.replays AS r FINAL WHERE log_partition = -1
COMMENT 'Each replay and what its comparison found, one row a replay, kept as long as the tables: the log does not have it'
