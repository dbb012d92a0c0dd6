package e2e

import (
	"crypto/sha256"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/marketlog/marketlog/deploy/config"
)

// composeProject parses docker-compose.yml as the tool itself does.
func composeProject(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../../docker-compose.yml"}, cli.WithWorkingDirectory("../.."))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func TestComposeServicesArePinnedAndHealthChecked(t *testing.T) {
	project := composeProject(t)
	want := []string{"clickhouse", "kafka", "process", "produce", "query", "redis"}
	if got := slices.Sorted(maps.Keys(project.Services)); !slices.Equal(got, want) {
		t.Fatalf("services %v, want %v", got, want)
	}
	for name, service := range project.Services {
		if service.HealthCheck == nil || len(service.HealthCheck.Test) == 0 {
			t.Errorf("%s has no health check", name)
		}
		_, tag, pinned := strings.Cut(service.Image, ":")
		if service.Build == nil && (!pinned || !strings.ContainsAny(tag, "0123456789") || strings.Count(tag, ".") < 2) {
			t.Errorf("image %q of %s is not pinned by version", service.Image, name)
		}
		for _, port := range service.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s opens port %s to everybody", name, port.Published)
			}
		}
	}
	for name, secret := range project.Secrets {
		if secret.File == "" {
			t.Errorf("secret %s is not a file", name)
		}
	}
}

// The environment of the roles is read as the roles will read it: an unknown name or a wrong value fails.
func TestComposeRolesAreConfiguredAsTheyExpect(t *testing.T) {
	project := composeProject(t)
	secrets := t.TempDir()
	for name := range project.Secrets {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, role := range []string{"produce", "process", "query"} {
		service := project.Services[role]
		if !slices.Equal(service.Command, types.ShellCommand{role}) {
			t.Errorf("%s runs %v", role, service.Command)
		}
		var env []string
		for name, value := range service.Environment {
			if value == nil {
				t.Fatalf("%s of %s has no value", name, role)
			}
			if strings.Contains(name, "PASSWORD") && !strings.HasSuffix(name, "_FILE") {
				t.Errorf("%s of %s is a secret in the environment", name, role)
			}
			env = append(env, name+"="+strings.ReplaceAll(*value, "/run/secrets", secrets))
		}
		cfg, _, err := config.LoadConfig(config.Sources{Env: env})
		if err != nil {
			t.Errorf("%s: %v", role, err)
			continue
		}
		if err := cfg.ValidateFor(role); err != nil {
			t.Errorf("%s: %v", role, err)
		}
	}
}

func TestComposeConfinesEveryService(t *testing.T) {
	for name, service := range composeProject(t).Services {
		if !slices.Contains(service.CapDrop, "ALL") || !slices.Contains(service.SecurityOpt, "no-new-privileges:true") || service.MemLimit == 0 || service.Restart == "" {
			t.Errorf("%s keeps capabilities, privileges or all memory: %v %v %d", name, service.CapDrop, service.SecurityOpt, service.MemLimit)
		}
		for _, word := range slices.Concat(service.Command, types.ShellCommand(service.HealthCheck.Test)) {
			if strings.Contains(word, "requirepass \"$") || strings.Contains(word, " -a ") {
				t.Errorf("%s has a password among its arguments: %s", name, word)
			}
		}
	}
	project := composeProject(t)
	for _, inner := range []string{"log", "stores"} {
		if !project.Networks[inner].Internal {
			t.Errorf("the network %s leads outside, and the traffic on it is in the clear", inner)
		}
	}
	if networks := project.Services["kafka"].Networks; !slices.Equal(slices.Collect(maps.Keys(networks)), []string{"log"}) {
		t.Errorf("Kafka, which asks for no password, is on %v", networks)
	}
}

// What make.sh writes can be read by the containers, and by nobody else on the host; analysts have a password.
func TestComposeSecretsAreKept(t *testing.T) {
	folder := t.TempDir()
	secrets := filepath.Join(folder, "secrets")
	for _, name := range []string{"secrets/make.sh", "clickhouse/analyst.xml", "clickhouse/reader.xml"} {
		content, err := os.ReadFile(filepath.Join("..", name))
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Join(folder, filepath.Dir(name)), 0o755), os.WriteFile(filepath.Join(folder, name), content, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // what exists stays
		if out, err := exec.Command("sh", filepath.Join(secrets, "make.sh")).CombinedOutput(); err != nil {
			t.Fatalf("make.sh: %v\n%s", err, out)
		}
	}
	if stat, err := os.Stat(secrets); err != nil || stat.Mode().Perm() != 0o700 {
		t.Errorf("the folder of the secrets has mode %v, %v", stat.Mode(), err)
	}
	for _, name := range []string{"analyst", "reader"} {
		password, err := os.ReadFile(filepath.Join(secrets, name+"_password"))
		if err != nil || len(password) != 64 {
			t.Fatalf("the password of %s has %d bytes, %v", name, len(password), err)
		}
		user, err := os.ReadFile(filepath.Join(secrets, name+".xml"))
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("<password_sha256_hex>%x</password_sha256_hex>", sha256.Sum256(password)); !strings.Contains(string(user), want) || strings.Contains(string(user), "no_password") {
			t.Errorf("%s is not asked for its password:\n%s", name, user)
		}
		if err := xml.Unmarshal(user, new(struct{ XMLName xml.Name })); err != nil {
			t.Errorf("the users' file of %s cannot be read: %v", name, err)
		}
	}
	for name, secret := range composeProject(t).Secrets {
		if _, err := os.Stat(filepath.Join(secrets, filepath.Base(secret.File))); err != nil {
			t.Errorf("make.sh writes no %s: %v", name, err)
		}
	}
}
