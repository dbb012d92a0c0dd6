-- +goose Up
-- Which parts of the past were changed, by the stamps of the batches that changed them, written after the rows themselves.
-- A part is a coin, a length of candles and a slot of time: a day of minutes, a month of hours, a year of days. Of seconds 0 are
-- the day of a fixing, where coin_id is empty, and everything, where it is '*'. A stamp is added, so a sum that has changed
-- says that there was one more.
CREATE TABLE IF NOT EXISTS past_marks
(
    coin_id LowCardinality(String),
    seconds UInt32,
    slot    DateTime('UTC'),
    stamp   UInt64
)
ENGINE = SummingMergeTree(stamp)
ORDER BY (coin_id, seconds, slot);

-- +goose Down
DROP TABLE past_marks;
