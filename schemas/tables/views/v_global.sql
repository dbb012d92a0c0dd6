CREATE OR REPLACE VIEW default.v_global
(
    time DateTime('UTC') COMMENT 'End of the minute',
    total_market_cap Float64 COMMENT 'Sum of the market caps of coins with a known price and supply, USD',
    total_volume_24h Float64 COMMENT 'Sum of their volumes of the last 24 h, USD',
    btc_dominance Float64 COMMENT 'Share of bitcoin in the market cap, percent',
    eth_dominance Float64 COMMENT 'Share of ether, percent',
    dominance Array(Tuple(coin_id String, symbol String, percent Float64)) COMMENT 'Shares of the ten largest coins, percent, the largest first',
    market_cap_change_24h Nullable(Float64) COMMENT 'Change of the market cap within 24 h, percent; NULL where the past is not known',
    volume_change_24h Nullable(Float64) COMMENT 'Change of the volume within 24 h, percent',
    active_coins UInt32 COMMENT 'Coins that have a price',
    active_markets UInt32 COMMENT 'Markets of our venues that made them',
    stablecoin_market_cap Float64 COMMENT 'Market cap of the stablecoins among them, USD',
    stablecoin_dominance Float64 COMMENT 'Their share, percent',
    fear_greed Nullable(UInt8) COMMENT 'Our own index, 0 extreme fear to 100 extreme greed; NULL where too little is known',
    fear_greed_components Array(Tuple(name String, value Float64)) COMMENT 'What it is the mean of, each from 0 to 100',
    simulated Bool COMMENT 'Made from simulated prices',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: a minute after its minute by log time, by when it is written'
)
AS SELECT time, total_market_cap, total_volume_24h, btc_dominance, eth_dominance,
    arrayZip(dominance.coin_id, dominance.symbol, dominance.percent) AS dominance, market_cap_change_24h, volume_change_24h, active_coins, active_markets,
    stablecoin_market_cap, stablecoin_dominance, fear_greed, arrayZip(components.name, components.value) AS fear_greed_components, simulated,
    toDateTime64(time + toIntervalMinute(1), 9, 'UTC') AS published
FROM {database}.summaries FINAL
COMMENT 'The whole market at the end of each minute, kept for ever'
