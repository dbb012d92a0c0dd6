-- +goose Up
-- What each process has admitted for a budget of a day, as it told last: the number of the record stands for the offset in
-- the version, so that a record which comes late changes nothing.
CREATE TABLE IF NOT EXISTS usage
(
    day           Date,
    budget        String,
    plan          LowCardinality(String),
    replica       String,
    requests      UInt64,
    charts        UInt64,
    time          DateTime64(9, 'UTC'),
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(day)
ORDER BY (budget, day, plan, replica);

-- +goose Down
DROP TABLE usage;
