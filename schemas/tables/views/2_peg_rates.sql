CREATE OR REPLACE VIEW {database}.peg_rates
(
    currency LowCardinality(String),
    day Date,
    usd Float64
)
AS SELECT currency, day, usd FROM {database}.fixings_usd WHERE currency IN {pegs}
UNION ALL
-- No central bank fixes the offshore yuan, for example. Then the median of what sources gave last for a day counts.
SELECT currency, day, 1 / ((rates[intDiv(length(rates) + 1, 2)] + rates[intDiv(length(rates), 2) + 1]) / 2) AS usd
FROM (
    SELECT quote AS currency, day, arraySort(groupArray(rate)) AS rates
    FROM (
        SELECT quote, day, toFloat64(argMax(f.rate, f.event_time)) AS rate
        FROM {database}.fiat_rates AS f FINAL
        WHERE f.base = 'USD' AND f.rate > 0 AND f.quote IN {pegs}
            AND f.quote NOT IN (SELECT currency FROM {database}.fixings_usd WHERE currency IN {pegs})
        GROUP BY f.source, f.quote AS quote, f.day AS day
    )
    GROUP BY currency, day
)
COMMENT 'What the currencies that stablecoins aim at cost in USD, by days'
