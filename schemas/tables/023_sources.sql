-- +goose Up
-- What each source declares of itself, as it was told last.
CREATE TABLE IF NOT EXISTS sources
(
    source        LowCardinality(String),
    name          String,
    kinds         Array(LowCardinality(String)),
    url           String,
    license       String,
    terms         String,
    attribution   String,
    interval_ns   Int64,
    enabled       Bool,
    simulated     Bool,
    ingest_time   DateTime64(9, 'UTC'),
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY source;

-- +goose Down
DROP TABLE sources;
