package deploy

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// composeProject parses docker-compose.yml as the tool itself does.
func composeProject(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../docker-compose.yml"}, cli.WithWorkingDirectory(".."))
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
		cfg, _, err := LoadConfig(Sources{Env: env})
		if err != nil {
			t.Errorf("%s: %v", role, err)
			continue
		}
		if err := cfg.ValidateFor(role); err != nil {
			t.Errorf("%s: %v", role, err)
		}
	}
}
