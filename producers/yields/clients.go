package yields

// Public clients beside which formats were read, see producers.Evidence.Clients.

// yieldServer is the adapter of a project in DefiLlama's server of yields.
func yieldServer(project string) string {
	return "https://github.com/DefiLlama/yield-server/blob/master/src/adaptors/" + project + "/index.js"
}

// balancer is the configuration of a chain in Balancer's server, which names the addresses of rates, the place of each in the
// answer, and what a percent is divided by.
func balancer(chain string) string {
	return "https://github.com/balancer/backend/blob/v3-main/config/" + chain + ".ts"
}

// defiCLI is a file of a command line for protocols of lending, which reads them without their own libraries.
func defiCLI(file string) string {
	return github("ggonzalez94/defi-cli", "HEAD", "internal/providers/"+file)
}

// github is a file of a repository on GitHub.
func github(repository, branch, file string) string {
	return "https://github.com/" + repository + "/blob/" + branch + "/" + file
}
