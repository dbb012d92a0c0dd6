CREATE OR REPLACE VIEW default.v_coins
(
    coin_id String COMMENT 'Canonical id of the coin (CoinGecko slug)',
    symbol String COMMENT 'Symbol, upper case',
    name String COMMENT 'Name',
    rank UInt32 COMMENT 'By market cap, 1 is the largest; 0 for none',
    kind LowCardinality(String) COMMENT 'coin or token, as far as a source reports',
    categories Array(String) COMMENT 'Categories, by the first source that reports any',
    platforms Array(Tuple(name String, address String)) COMMENT 'Chains that it is issued on, by the source''s name, and its address there',
    description String COMMENT 'What the source writes about it',
    image_url String COMMENT 'Address of its image',
    links Array(Tuple(kind String, url String)) COMMENT 'Its addresses by kind: homepage, explorer, repository and others',
    developer Array(Tuple(name String, value Float64)) COMMENT 'Statistics of its development, such as stars',
    created_at String COMMENT 'When it began, by the source, ISO 8601; empty if none says',
    first_seen DateTime64(9, 'UTC') COMMENT 'When a source first named it',
    details_updated_at Nullable(DateTime64(9, 'UTC')) COMMENT 'When details of it were last read that differed; NULL before the first',
    inactive Bool COMMENT 'Whether all sources that name it say that it is not traded any more',
    sources Array(String) COMMENT 'Who names it',
    published DateTime64(9, 'UTC') COMMENT 'Not known before, as it is: when the newest report of it was read. Earlier states are in v_coin_events, its rank in v_universe'
)
AS WITH (if(indexOf(['coingecko', 'coinpaprika'], source) = 0, 255, indexOf(['coingecko', 'coinpaprika'], source)), source, part, source_id) AS preference
SELECT s.coin_id AS coin_id, s.symbol AS symbol, s.name AS name, m.rank AS rank, s.kind AS kind, s.categories AS categories, s.platforms AS platforms,
    s.description AS description, s.image_url AS image_url, s.links AS links, s.developer AS developer, s.created_at AS created_at, f.first_seen AS first_seen,
    s.details_updated_at AS details_updated_at, s.inactive AS inactive, s.sources AS sources, s.read AS published
FROM (
    SELECT coin_id, upper(argMinIf(c.symbol, preference, c.symbol != '')) AS symbol, argMinIf(c.name, preference, c.name != '') AS name,
        argMinIf(c.kind, preference, c.kind != '') AS kind, argMinIf(c.categories, preference, notEmpty(c.categories)) AS categories,
        argMinIf(arrayZip(c.platforms.name, c.platforms.address), preference, notEmpty(c.platforms.name)) AS platforms,
        argMinIf(c.description, preference, c.description != '') AS description, argMinIf(c.image_url, preference, c.image_url != '') AS image_url,
        argMinIf(arrayZip(c.links.kind, c.links.url), preference, notEmpty(c.links.kind)) AS links,
        argMinIf(arrayZip(c.developer.name, c.developer.value), preference, notEmpty(c.developer.name)) AS developer,
        argMinIf(c.created_at, preference, c.created_at != '') AS created_at, maxOrNullIf(c.ingest_time, c.part = 'detail') AS details_updated_at,
        toBool(min(c.inactive)) AS inactive, arraySort(groupUniqArray(toString(c.source))) AS sources, max(c.ingest_time) AS read
    FROM (SELECT * FROM {database}.coins FINAL WHERE coin_id != '') AS c GROUP BY coin_id
) AS s
LEFT JOIN (SELECT coin_id, min(ingest_time) AS first_seen FROM {database}.coin_events GROUP BY coin_id) AS f ON f.coin_id = s.coin_id
LEFT JOIN (SELECT coin_id, rank FROM {database}.markets FINAL) AS m ON m.coin_id = s.coin_id
COMMENT 'Coins as the sources describe them now, one row a coin that any of them names: of each column what CoinGecko says, else CoinPaprika, else another'
