module github.com/marketlog/marketlog/query/clients/go

go 1.26.0
