-- +goose Up
CREATE TABLE IF NOT EXISTS sentiment
(
    range              LowCardinality(String),
    time               DateTime('UTC'),
    positive           UInt32,
    negative           UInt32,
    neutral            UInt32,
    total              UInt32,
    ratio              Float64,
    classification     LowCardinality(String),
    average_change_24h Float64,
    median_change_24h  Float64,
    log_partition      Int32,
    log_offset         Int64,
    version            UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(time)
ORDER BY (range, time);

-- +goose Down
DROP TABLE sentiment;
