CREATE OR REPLACE VIEW {database}.peg_rates
(
    currency LowCardinality(String),
    day Date,
    usd Float64
)
AS WITH told AS (
    SELECT source, base, quote, day, event_time, rate, log_offset FROM {database}.fixings_told
    WHERE log_offset < {before:Int64} AND base IN ('EUR', 'USD') AND (quote = 'USD' OR quote IN {pegs})
),
-- What was said last of a day counts, as in fixings.
euro AS (
    SELECT t.quote AS quote, t.day AS day, toFloat64(argMax(t.rate, t.log_offset)) AS units FROM told AS t WHERE t.base = 'EUR' GROUP BY quote, day HAVING units > 0
),
fixed AS (
    SELECT if(f.quote = 'USD', 'EUR', f.quote) AS currency, f.day AS day, dollar.units / if(f.quote = 'USD', 1, f.units) AS usd
    FROM euro AS f INNER JOIN (SELECT day, units FROM euro WHERE quote = 'USD') AS dollar ON dollar.day = f.day
),
-- No central bank fixes the offshore yuan, for example. Then the median of what sources gave last for a day counts.
median AS (
    SELECT currency, day, 1 / ((rates[intDiv(length(rates) + 1, 2)] + rates[intDiv(length(rates), 2) + 1]) / 2) AS usd
    FROM (
        SELECT quote AS currency, day, arraySort(groupArray(last)) AS rates
        FROM (
            SELECT t.source AS source, t.quote AS quote, t.day AS day, toFloat64(argMax(t.rate, (t.event_time, t.log_offset))) AS last
            FROM told AS t WHERE t.base = 'USD' AND t.rate > 0 AND t.quote NOT IN (SELECT currency FROM fixed) GROUP BY source, quote, day
        )
        GROUP BY currency, day
    )
)
SELECT currency, day, usd FROM fixed WHERE currency IN {pegs}
UNION ALL
SELECT currency, day, usd FROM median WHERE currency IN {pegs}
COMMENT 'What the currencies that stablecoins aim at cost in USD, by days, by what sources had said in records of reference.raw.v1 before an offset'
