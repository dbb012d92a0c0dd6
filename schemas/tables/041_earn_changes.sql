-- +goose Up
-- Terms of earn products that changed, kept for ever. A change of a whole product has no variant.
CREATE TABLE IF NOT EXISTS earn_changes
(
    product_id    String,
    variant_id    String,
    field         LowCardinality(String),
    time          DateTime('UTC'),
    provider      LowCardinality(String),
    coin_id       LowCardinality(String),
    symbol        LowCardinality(String),
    category      LowCardinality(String),
    before        String,
    after         String,
    simulated     Bool,
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(time)
ORDER BY (product_id, variant_id, field, time);

-- +goose Down
DROP TABLE earn_changes;
