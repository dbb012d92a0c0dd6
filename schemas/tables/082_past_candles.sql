-- +goose Up
-- The back-filled candles of coins in USD, folded from the venues' own (table backfill) when these are written. Where priced is
-- false no market could be converted. quotes are those of the markets, and rates what one unit of each cost in USD
-- at the open, 0 where that is not known.
CREATE TABLE IF NOT EXISTS past_candles
(
    coin_id    LowCardinality(String),
    seconds    UInt32,
    start      DateTime('UTC'),
    open       Float64,
    high       Float64,
    low        Float64,
    close      Float64,
    volume     Decimal(76, 18),
    volume_usd Float64,
    priced     Bool,
    quotes     Array(LowCardinality(String)),
    rates      Array(Float64),
    version    UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (coin_id, seconds, start);

-- +goose Down
DROP TABLE past_candles;
