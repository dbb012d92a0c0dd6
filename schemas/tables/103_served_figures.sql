-- +goose Up
-- What the candles of coins showed, with which each process served their rows from an instant on: all of them, or those that differ from the row
-- before of the same process. They are kept as they were served: the candles that they are made of go on meanwhile.
CREATE TABLE IF NOT EXISTS served_figures
(
    time          DateTime64(9, 'UTC'),
    replica       LowCardinality(String),
    minute        DateTime('UTC'),
    whole         Bool,
    coins Nested (id LowCardinality(String), day_ago Float64, high Float64, low Float64, whole Bool, highest Float64, highest_at DateTime64(9, 'UTC'),
        lowest Float64, lowest_at DateTime64(9, 'UTC'), days30_ago Float64, days60_ago Float64, days200_ago Float64,
        year_ago Float64),
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toDate(time)
ORDER BY (replica, time);

-- +goose Down
DROP TABLE served_figures;
