-- +goose Up
-- What operators exclude of venues' ticks, and take back. valid_to is 0 for an exclusion without an end.
CREATE TABLE IF NOT EXISTS corrections
(
    id            String,
    time          DateTime64(9, 'UTC'),
    kind          LowCardinality(String),
    venue         LowCardinality(String),
    symbol        String,
    valid_from    DateTime64(9, 'UTC'),
    valid_to      DateTime64(9, 'UTC'),
    author        String,
    reason        String,
    evidence      String,
    withdraws     String,
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (time, id);

-- +goose Down
DROP TABLE corrections;
