-- +goose Up
-- Coins that rose and fell, by the end of each minute.
CREATE TABLE IF NOT EXISTS breadth
(
    time          DateTime('UTC'),
    rising        UInt32,
    falling       UInt32,
    unchanged     UInt32,
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(time)
ORDER BY time;

-- +goose Down
DROP TABLE breadth;
