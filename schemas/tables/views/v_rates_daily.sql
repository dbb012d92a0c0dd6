CREATE OR REPLACE VIEW default.v_rates_daily
(
    key String COMMENT 'Names the rate, as in v_rates',
    start DateTime('UTC') COMMENT 'Start of the day',
    provider LowCardinality(String) COMMENT 'The project or venue that pays or takes it',
    source LowCardinality(String) COMMENT 'Who reported it',
    category LowCardinality(String) COMMENT 'As in v_rates',
    coin_id String COMMENT 'Canonical id of the coin; empty if not known',
    symbol LowCardinality(String) COMMENT 'Its symbol; the source''s own without a coin',
    pool String COMMENT 'The source''s own id of the pool, market or product',
    provider_symbol String COMMENT 'The source''s own symbol',
    chain LowCardinality(String) COMMENT 'Chain; empty off chain',
    open Float64 COMMENT 'APY of the first answer, percent',
    high Float64 COMMENT 'Greatest',
    low Float64 COMMENT 'Least',
    close Float64 COMMENT 'Of the last answer',
    mean Float64 COMMENT 'Mean of the answers',
    n UInt32 COMMENT 'How many answers',
    tvl_usd Nullable(Float64) COMMENT 'Reported with the last answer, USD; NULL if not reported',
    shadowed LowCardinality(String) COMMENT 'As in v_rates',
    origin String COMMENT 'live by the answers read in the day, backfill by what the source reported afterwards',
    simulated Bool COMMENT 'By a simulated source',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: a minute after the end of the day by log time; of what its source reported afterwards when that was read'
)
AS SELECT concat(source, '|', category, '|', pool) AS key, start, provider, source, category, coin_id, symbol, pool, provider_symbol, chain, open, high, low, close, mean, n,
    tvl_usd, shadowed, origin, simulated, published AS published
FROM {database}.rates_rolled_1d
COMMENT 'What each rate did by days, kept for five years'
