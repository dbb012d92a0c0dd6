-- +goose Up
-- How far each process that answers had read a topic of one partition whose records count together, from an instant on: of a topic that is
-- folded by the minute, the end of the minute in Unix seconds. Of markets.v1 served_minutes has it.
CREATE TABLE IF NOT EXISTS served_topics
(
    topic         LowCardinality(String),
    time          DateTime64(9, 'UTC'),
    replica       LowCardinality(String),
    read          Int64,
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (topic, time, replica);

-- +goose Down
DROP TABLE served_topics;
