CREATE OR REPLACE VIEW default.v_gaps
(
    venue LowCardinality(String) COMMENT 'Venue; sources for all polled sources, log for the log itself, tables for rows that are lost',
    symbol LowCardinality(String) COMMENT 'Symbol of the market; empty for the whole connection; topic and partition of the log, name of the table',
    reason LowCardinality(String) COMMENT 'sequence, disconnect, silence, overflow, disk (ingest paused on a full disk) or damage (of the log, or of tables whose records the log has no more)',
    from_time DateTime64(9, 'UTC') COMMENT 'Last message received before the gap',
    to_time DateTime64(9, 'UTC') COMMENT 'First message received after it; from_time itself while a pause goes on',
    missed UInt64 COMMENT 'Messages known to be missing; 0 if unknown',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: its end, as to_time. One that goes on is replaced until it ends'
)
AS SELECT venue, symbol, reason, from_time, to_time, missed, to_time AS published FROM {database}.gaps FINAL
COMMENT 'Stretches in which less was received from a venue than should be, kept for at least 90 days'
