package reference

// github is a public client beside which formats were read, see producers.Evidence.Clients: a file of a repository on GitHub.
func github(repository, branch, file string) string {
	return "https://github.com/" + repository + "/blob/" + branch + "/" + file
}

// coinPaprikaClients are its own client and one of another's, each with a file for what an endpoint answers.
func coinPaprikaClients(own, other string) []string {
	return []string{
		github("coinpaprika/coinpaprika-api-go-client", "master", "coinpaprika/"+own+".go"),
		github("MSiccDev/CoinpaprikaAPI", "master", "CoinpaprikaAPI/Entity/"+other+".cs"),
	}
}
