-- +goose Up
-- Of what is older than prices are kept only the last price of a coin before it fell silent is ever asked for, and prices are dropped by whole hours:
-- so the last one of each hour is enough, where there was one of each minute.
CREATE TABLE IF NOT EXISTS prices_1h
(
    coin_id       LowCardinality(String),
    hour          DateTime('UTC'),
    record        String,
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(hour)
ORDER BY (coin_id, hour);

INSERT INTO prices_1h (coin_id, hour, record, log_partition, log_offset, version)
SELECT coin_id, toStartOfHour(minute) AS hour, argMax(m.record, m.version), argMax(m.log_partition, m.version), argMax(m.log_offset, m.version), max(m.version)
FROM prices_1m AS m GROUP BY coin_id, hour;

-- It stays, empty: another process that starts may be reading it for the same step. As another table, since rows that are gone from one are damage.
CREATE OR REPLACE TABLE prices_1m
(
    coin_id       LowCardinality(String),
    minute        DateTime('UTC'),
    record        String,
    log_partition Int32,
    log_offset    Int64,
    version       UInt128
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(minute)
ORDER BY (coin_id, minute);

-- +goose Down
DROP TABLE prices_1h;
