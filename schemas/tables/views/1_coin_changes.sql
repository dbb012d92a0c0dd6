CREATE OR REPLACE VIEW {database}.coin_changes
(
    time DateTime64(9, 'UTC'),
    coin_id String,
    source LowCardinality(String),
    source_id String,
    part LowCardinality(String),
    changed Array(String),
    symbol String,
    name String,
    rank UInt32,
    kind LowCardinality(String),
    categories Array(String),
    platforms Array(Tuple(name String, address String)),
    image_url String,
    created_at String,
    inactive Bool,
    event_time DateTime64(9, 'UTC')
)
AS SELECT ingest_time AS time, coin_id, source, source_id, part,
    if(empty(before), [], arrayFilter((field, is, was) -> is != was,
        ['symbol', 'name', 'kind', 'categories', 'platforms', 'description', 'image_url', 'links', 'created_at', 'inactive'], now, before)) AS changed,
    symbol, name, rank, kind, categories, arrayZip(platforms.name, platforms.address) AS platforms, image_url, created_at, inactive, event_time
FROM (
    SELECT *, [sipHash64(symbol), sipHash64(name), sipHash64(kind), sipHash64(categories), sipHash64(platforms.name, platforms.address), sipHash64(description),
            sipHash64(image_url), sipHash64(links.kind, links.url), sipHash64(created_at), sipHash64(inactive)] AS now,
        lagInFrame(now) OVER (PARTITION BY coin_id, source, source_id, part ORDER BY ingest_time ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS before
    FROM {database}.coin_events FINAL
)
WHERE empty(before) OR notEmpty(changed)
COMMENT 'What sources report of coins, where it differs from their report before'
