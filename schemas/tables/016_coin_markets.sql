-- +goose Up
-- What sources said of the markets of coins, in USD; NULL where they did not say. By when it was read, not by the
-- source's own time: that of a dead coin lies years back, and rows of many months in one insert are refused.
CREATE TABLE IF NOT EXISTS coin_markets
(
    source        LowCardinality(String),
    source_id     String,
    coin_id       String,
    symbol        String,
    name          String,
    rank          UInt32,
    price         Nullable(Float64),
    market_cap    Nullable(Float64),
    fully_diluted_valuation Nullable(Float64),
    volume_24h    Nullable(Float64),
    high_24h      Nullable(Float64),
    low_24h       Nullable(Float64),
    circulating_supply Nullable(Float64),
    total_supply  Nullable(Float64),
    max_supply    Nullable(Float64),
    change_1h     Nullable(Float64),
    change_24h    Nullable(Float64),
    change_7d     Nullable(Float64),
    change_14d    Nullable(Float64),
    change_30d    Nullable(Float64),
    change_60d    Nullable(Float64),
    change_200d   Nullable(Float64),
    change_1y     Nullable(Float64),
    ath           Nullable(Float64),
    ath_time      DateTime64(9, 'UTC'),
    atl           Nullable(Float64),
    atl_time      DateTime64(9, 'UTC'),
    image_url     String,
    event_time    DateTime64(9, 'UTC'),
    ingest_time   DateTime64(9, 'UTC'),
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toDate(ingest_time)
ORDER BY (source, source_id, ingest_time);

-- +goose Down
DROP TABLE coin_markets;
