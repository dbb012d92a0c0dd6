package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/deploy/chaos/scripted"
	"github.com/marketlog/marketlog/deploy/deploytest"
)

// installation is what can be looked at while its processes come and go: the log, the views, and what
// was acknowledged to the producers.
type installation struct {
	kafka, sql string
	acks       string // the file that producers append to
}

// query asks the SQL port, with rows as the format in the statement says.
func (in *installation) query(ctx context.Context, statement string) ([]byte, error) {
	address := "http://" + in.sql + "/?" + url.Values{
		"output_format_json_quote_64bit_integers": {"0"}, "output_format_json_quote_denormals": {"0"},
	}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(statement))
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the SQL port: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("reading an answer of the SQL port: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the SQL port answers %s to %.200s: %.1000s", answer.Status, statement, body)
	}
	return body, nil
}

// acked are the event ids that the log has acknowledged, in hexadecimal.
func (in *installation) acked(t *testing.T) map[string]bool {
	t.Helper()
	content, err := os.ReadFile(in.acks)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		if id := lines.Text(); len(id) == 32 { // the last line may be cut by a kill
			ids[id] = true
		}
	}
	return ids
}

// freePorts puts addresses of loopback that nobody listens on.
func freePorts(t *testing.T, addrs ...*string) {
	t.Helper()
	for _, addr := range addrs {
		*addr = deploytest.FreeAddr(t)
	}
}

// onlyScripted points two venues at the scripted ones and turns everything else off that would be read
// live: a test must not reach the public.
func onlyScripted(t *testing.T, binary string, coinbase, kraken *scripted.Venue) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary, "config", "print", "-o", "json").Output()
	if err != nil {
		t.Fatalf("asking the binary for its settings: %v", err)
	}
	var printed struct{ Settings []struct{ Key string } }
	if err := json.Unmarshal(out, &printed); err != nil {
		t.Fatalf("reading its settings: %v", err)
	}
	var list []string
	for _, s := range printed.Settings {
		reads := strings.HasPrefix(s.Key, "venues.") || strings.HasPrefix(s.Key, "sources.") || strings.HasPrefix(s.Key, "backfill.")
		if reads && strings.HasSuffix(s.Key, ".enabled") {
			ours := s.Key == "venues.coinbase.enabled" || s.Key == "venues.kraken.enabled"
			list = append(list, setting(s.Key, fmt.Sprint(ours)))
		}
	}
	for name, v := range map[string]*scripted.Venue{"coinbase": coinbase, "kraken": kraken} {
		list = append(list, setting("venues."+name+".ws_url", v.StreamURL()), setting("venues."+name+".rest_url", v.RESTURL()))
	}
	return list
}

// setting is a setting as a variable of the environment.
func setting(key, value string) string {
	return "MARKETLOG_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(key)) + "=" + value
}
