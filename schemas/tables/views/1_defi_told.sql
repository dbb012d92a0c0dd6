CREATE OR REPLACE VIEW {database}.defi_told
(
    source LowCardinality(String),
    time DateTime('UTC'),
    total_tvl Float64,
    told Float64,
    coverage Nullable(Float64),
    measured Bool,
    read_time DateTime64(9, 'UTC')
)
AS WITH
    (SELECT total_tvl FROM {database}.defi WHERE total_tvl > 0 ORDER BY time DESC, version DESC LIMIT 1) AS total,
    (SELECT minOrNull(time) FROM {database}.defi) AS begins
SELECT source, toDateTime(p.time, 'UTC') AS time, assumeNotNull(p.total_tvl) AS total_tvl,
    argMax(total_tvl, p.time) OVER (PARTITION BY source) AS told, least(100, 100 * told / nullIf(total, 0)) AS coverage, ifNull(time >= begins, false) AS measured, p.ingest_time AS read_time
FROM {database}.defi_past AS p FINAL WHERE p.total_tvl > 0
COMMENT 'What was locked in all of DeFi, as sources reported it afterwards by their own counts'
