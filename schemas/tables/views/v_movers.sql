CREATE OR REPLACE VIEW default.v_movers
(
    range LowCardinality(String) COMMENT 'Segment of ranks: 1-50, 51-100, 101-250 or all',
    side Enum8('gainer' = 1, 'loser' = 2) COMMENT 'gainer: rose within 24 h; loser: fell',
    position UInt8 COMMENT '1 is the strongest of its side, up to 50',
    coin_id String COMMENT 'Canonical id of the coin',
    symbol String COMMENT 'Symbol',
    name String COMMENT 'Name',
    rank UInt32 COMMENT 'By market cap',
    price Float64 COMMENT 'Price, USD',
    change_24h Float64 COMMENT 'Change within 24 h, percent',
    volume_24h Float64 COMMENT 'Volume of the last 24 h, USD; at least 50,000',
    time DateTime('UTC') COMMENT 'End of the minute that the row of the coin was made in',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: a minute after its minute by log time, by when it is written. What the row was before is not kept'
)
AS SELECT range, if(change_24h > 0, 'gainer', 'loser') AS side,
    row_number() OVER (PARTITION BY range, change_24h > 0 ORDER BY abs(change_24h) DESC, rank, coin_id) AS position,
    coin_id, symbol, name, rank, price, assumeNotNull(m.change_24h) AS change_24h, assumeNotNull(m.volume_24h) AS volume_24h, time,
    toDateTime64(time + toIntervalMinute(1), 9, 'UTC') AS published
FROM {database}.markets AS m FINAL
ARRAY JOIN arrayMap(r -> r.1, arrayFilter(r -> rank >= r.2 AND rank <= r.3, [('1-50', 1, 50), ('51-100', 51, 100), ('101-250', 101, 250), ('all', 1, 4294967295)])) AS range
WHERE m.rank > 0 AND m.change_24h != 0 AND m.volume_24h >= 50000
QUALIFY position <= 50
COMMENT 'The coins that rose and fell most within 24 h, up to 50 of each side in each segment of ranks'
