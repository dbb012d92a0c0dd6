CREATE OR REPLACE VIEW default.v_earn_benchmark
(
    date Date COMMENT 'The day that begins with the midnight, UTC, of which the fixing is',
    segment LowCardinality(String) COMMENT 'overall, cefi or defi',
    revision UInt32 COMMENT '0 for the fixing, 1 for its first correction, ...',
    current Bool COMMENT 'No correction has taken its place',
    supersedes String COMMENT 'The revision whose place it takes, as date/segment/revision; empty for a fixing',
    reason String COMMENT 'Why it was corrected',
    time DateTime('UTC') COMMENT 'When it was written: the end of the first minute after midnight that was folded',
    median Float64 COMMENT 'Median over the providers, percent a year',
    tvl_weighted Nullable(Float64) COMMENT 'Mean weighted by TVL, percent a year; NULL where no TVL is known',
    provider_count UInt32 COMMENT 'Providers that count',
    tvl_usd Float64 COMMENT 'TVL of what counts, USD',
    quotes Array(Tuple(provider String, segment String, apy Float64, tvl_usd Float64, variants UInt32)) COMMENT 'What each provider contributes',
    methodology_version UInt32 COMMENT 'Version of the formulas',
    simulated Bool COMMENT 'Rates of simulated sources are in it',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: a minute after its minute by log time, by when it is written'
)
AS SELECT day AS date, segment, revision, revision = max(revision) OVER (PARTITION BY day, segment) AS current, supersedes, reason, time, median, tvl_weighted,
    provider_count, tvl_usd, arrayZip(`quotes.provider`, `quotes.segment`, `quotes.apy`, `quotes.tvl_usd`, `quotes.variants`) AS quotes, methodology_version, simulated,
    toDateTime64(time + toIntervalMinute(1), 9, 'UTC') AS published
FROM (SELECT * FROM {database}.earn_fixings FINAL UNION ALL SELECT * FROM {database}.earn_corrections FINAL)
COMMENT 'What flexible deposits of USD stablecoins earned at the beginning of each day, one row a segment and revision'
