-- +goose Up
-- Up to which time rows of a table were dropped to stay within the disk budget, and when that was.
CREATE TABLE IF NOT EXISTS dropped
(
    table LowCardinality(String),
    until DateTime('UTC'),
    at    DateTime64(9, 'UTC')
)
ENGINE = ReplacingMergeTree
ORDER BY (table, until, at);

-- +goose Down
DROP TABLE dropped;
