CREATE OR REPLACE VIEW default.v_protocols
(
    time DateTime64(9, 'UTC') COMMENT 'When it was read',
    source LowCardinality(String) COMMENT 'Who reported it',
    slug String COMMENT 'The source''s id of the protocol',
    name String COMMENT 'What it is called',
    symbol String COMMENT 'Symbol of its own coin; empty for none',
    category LowCardinality(String) COMMENT 'As the source writes it, such as Lending; exchanges are CEX',
    tvl Float64 COMMENT 'Locked in it, USD; 0 where the source reports nothing that is possible',
    borrowed Float64 COMMENT 'Borrowed from it, USD: what the source reports in all, else the sum of its chains; 0 if it reports neither',
    chains Array(Tuple(chain String, amount Float64)) COMMENT 'Amounts by the source''s own keys: chains, sections such as borrowed and pool2, and sections of chains such as Ethereum-borrowed; USD',
    change_1d Nullable(Float64) COMMENT 'Change of tvl within a day by the source, percent',
    change_7d Nullable(Float64) COMMENT 'The same within 7 days',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: when it was read, as time'
)
AS SELECT ingest_time AS time, source, slug, name, symbol, category, if(p.tvl > 0 AND p.tvl <= 1e15, assumeNotNull(p.tvl), 0) AS tvl,
    if(has(p.chains.chain, 'borrowed'), arraySum((c, a) -> if(c = 'borrowed' AND a > 0 AND a <= 1e15, a, 0), p.chains.chain, p.chains.amount),
        arraySum((c, a) -> if(endsWith(c, '-borrowed') AND a > 0 AND a <= 1e15, a, 0), p.chains.chain, p.chains.amount)) AS borrowed,
    arrayZip(p.chains.chain, p.chains.amount) AS chains, change_1d, change_7d, ingest_time AS published
FROM {database}.protocols AS p FINAL
COMMENT 'What sources reported of protocols, one row for each report; kept for 90 days'
