-- +goose Up
-- Operators' words on what a symbol means, each from its time until the next one of the same source and symbol.
-- An empty coin_id takes the one before back.
CREATE TABLE IF NOT EXISTS overrides
(
    source        LowCardinality(String),
    symbol        String,
    time          DateTime64(9, 'UTC'),
    coin_id       String,
    reason        String,
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (source, symbol, time);

-- +goose Down
DROP TABLE overrides;
