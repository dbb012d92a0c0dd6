package streamtest

import (
	"fmt"
	"os/exec"
	"testing"
)

// KafkaTool runs one of Apache Kafka's own command line tools, by its class, and returns what it prints. It skips t where
// Java or Kafka is missing. An error means that the tool did not end with 0.
func KafkaTool(t testing.TB, class string, args ...string) (string, error) {
	t.Helper()
	install := findKafka(t)
	java := []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", install.jars, class}
	out, err := exec.CommandContext(t.Context(), install.java, append(java, args...)...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("running %s %v: %w\n%s", class, args, err, out)
	}
	return string(out), nil
}
