CREATE OR REPLACE VIEW {database}.global_past
(
    source LowCardinality(String),
    time DateTime('UTC'),
    total_market_cap Float64,
    total_volume_24h Float64,
    btc_dominance Float64,
    eth_dominance Float64,
    coins UInt64,
    told Float64,
    coverage Nullable(Float64),
    read_time DateTime64(9, 'UTC')
)
AS WITH
    (SELECT total_market_cap FROM {database}.summaries WHERE total_market_cap > 0 ORDER BY time DESC, version DESC LIMIT 1) AS total,
    points AS (
        SELECT source, source_id, toDateTime(toStartOfHour(p.time), 'UTC') AS time, argMin(p.coin_id, p.time) AS coin_id,
            argMin(assumeNotNull(p.market_cap), p.time) AS cap, argMin(ifNull(p.volume_24h, 0), p.time) AS volume, max(p.ingest_time) AS read_time
        FROM {database}.coin_past AS p FINAL WHERE p.market_cap > 0
        GROUP BY source, source_id, time
    ),
    basket AS (
        SELECT source, source_id, newest_cap, arraySum(arraySort(groupArray(newest_cap) OVER (PARTITION BY source))) AS newest_caps
        FROM (
            SELECT source, source_id, argMax(cap, time) AS newest_cap, max(time) AS told, max(told) OVER (PARTITION BY source) AS newest FROM points GROUP BY source, source_id
        ) WHERE told > newest - toIntervalDay(2)
    )
SELECT p.source AS source, p.time AS time, arraySum(arraySort(groupArray(p.cap))) AS total_market_cap, arraySum(arraySort(groupArray(p.volume))) AS total_volume_24h,
    100 * sumIf(p.cap, p.coin_id = 'bitcoin') / total_market_cap AS btc_dominance, 100 * sumIf(p.cap, p.coin_id = 'ethereum') / total_market_cap AS eth_dominance,
    count() AS coins, any(p.basket_caps) AS told, least(100, 100 * told / nullIf(total, 0)) AS coverage, max(p.read_time) AS read_time
FROM (
    SELECT p.source AS source, p.time AS time, p.coin_id AS coin_id, p.cap AS cap, p.volume AS volume, p.read_time AS read_time, max(b.newest_caps) OVER w AS whole,
        arraySum(arraySort(groupArray(b.newest_cap) OVER w)) AS basket_caps
    FROM points AS p LEFT JOIN basket AS b ON b.source = p.source AND b.source_id = p.source_id
    WINDOW w AS (PARTITION BY p.source, p.time)
) AS p WHERE p.basket_caps > 0 AND p.basket_caps >= 0.99 * whole GROUP BY source, time
COMMENT 'The largest coins together at full hours, as sources reported afterwards; hours for which it reported less than 99 % of those that it reports now are left out'
