-- +goose Up
-- Of each part of the past what it was folded from last, written after its rows: stamp is made of all marks that it depends on,
-- among them those of the coins in quotes; waits is when the first candle ends that was left out since live minutes
-- may still come before it, 1970 for none.
CREATE TABLE IF NOT EXISTS past_folds
(
    coin_id LowCardinality(String),
    seconds UInt32,
    slot    DateTime('UTC'),
    stamp   UInt64,
    quotes  Array(LowCardinality(String)),
    waits   DateTime('UTC'),
    version UInt128
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (coin_id, seconds, slot);

-- +goose Down
DROP TABLE past_folds;
