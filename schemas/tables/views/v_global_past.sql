CREATE OR REPLACE VIEW default.v_global_past
(
    time DateTime('UTC') COMMENT 'The full hour',
    source LowCardinality(String) COMMENT 'Who reported it afterwards',
    total_market_cap Float64 COMMENT 'Sum of the market caps of the coins that were reported, USD: a part of the market, see coverage',
    total_volume_24h Float64 COMMENT 'Sum of their volumes of the 24 h before, USD',
    btc_dominance Float64 COMMENT 'Share of bitcoin in that sum, percent: more than in the whole market, by what coverage lacks',
    eth_dominance Float64 COMMENT 'Share of ether in that sum, percent',
    coins UInt64 COMMENT 'How many coins were reported',
    coverage Nullable(Float64) COMMENT 'What the same coins hold now of the newest total market cap of v_global, percent; NULL without one',
    measured Bool COMMENT 'Whether v_global has a minute of the hour that ends then: it takes precedence over this row in answers',
    origin String COMMENT 'backfill: reported afterwards',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: when it was read last; when it was first is not kept. coverage is as of now'
)
AS SELECT p.time AS time, p.source AS source, p.total_market_cap AS total_market_cap, p.total_volume_24h AS total_volume_24h, p.btc_dominance AS btc_dominance,
    p.eth_dominance AS eth_dominance, p.coins AS coins, p.coverage AS coverage, m.minutes > 0 AS measured, 'backfill' AS origin, p.read_time AS published
FROM {database}.global_past AS p
LEFT JOIN (
    SELECT toDateTime(3600 * intDiv(toUnixTimestamp(time) + 3599, 3600), 'UTC') AS ends, count() AS minutes FROM {database}.summaries WHERE total_market_cap > 0 GROUP BY ends
) AS m ON m.ends = p.time
COMMENT 'The past of the whole market, as far as sources tell that of its largest coins; what was measured here is in v_global'
