CREATE OR REPLACE VIEW default.v_defi_past
(
    time DateTime('UTC') COMMENT 'When it was locked: the beginning of a day',
    source LowCardinality(String) COMMENT 'Who told it afterwards',
    total_tvl Float64 COMMENT 'Locked in protocols by the count of the source, USD: it leaves out all that it knows to be counted twice, which total_tvl of v_defi does not; see coverage',
    coverage Nullable(Float64) COMMENT 'The newest total that the source told, as a share of the newest total_tvl of v_defi, percent, at most 100; NULL without one',
    measured Bool COMMENT 'Whether v_defi has a minute of the day that ends then: it stands before this row in answers',
    origin String COMMENT 'backfill: told afterwards'
)
AS SELECT p.time AS time, p.source AS source, p.total_tvl AS total_tvl, p.coverage AS coverage, m.minutes > 0 AS measured, 'backfill' AS origin
FROM {database}.defi_told AS p
LEFT JOIN (
    SELECT toDateTime(86400 * intDiv(toUnixTimestamp(time) + 86399, 86400), 'UTC') AS ends, count() AS minutes FROM {database}.defi GROUP BY ends
) AS m ON m.ends = p.time
COMMENT 'The past of what is locked in all of DeFi, by the count of its source; what was measured here is in v_defi'
