// Package helm holds the chart of deploy/helm to Helm's own rules and to the types of Kubernetes. It is a module of its own, since Helm and
// Kubernetes bring a hundred others; it has Helm's packages that lint and render, and neither its command nor what talks to a cluster.
package helm

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	yamlreader "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

var update = flag.Bool("update", false, "write the manifests of deploy/helm/testdata anew")

const (
	chartFolder = "../../deploy/helm/marketlog"
	testdata    = "../../deploy/helm/testdata"
	release     = "example"
	namespace   = "prices"
	// kubernetes is the oldest version that the chart allows.
	kubernetes = "v1.30.0"
)

// render is what `helm template` gives, by template, with the notes.
func render(t *testing.T, values map[string]any) (map[string]string, error) {
	t.Helper()
	chart, err := loader.LoadDir(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	version, err := chartutil.ParseKubeVersion(kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	options := chartutil.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, values, options, capabilities) // held to values.schema.json
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.Render(chart, all)
}

// valuesFiles are those of testdata, by name.
func valuesFiles(t *testing.T) map[string]map[string]any {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(testdata, "*.values.yaml"))
	if err != nil || len(paths) < 3 {
		t.Fatalf("found %v, %v; want values of both modes", paths, err)
	}
	files := map[string]map[string]any{}
	for _, path := range paths {
		values, err := chartutil.ReadValuesFile(path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		files[strings.TrimSuffix(filepath.Base(path), ".values.yaml")] = values
	}
	return files
}

// The manifests of each file of values are as recorded; what reads them in the main module is a test of the settings.
func TestChartRendersAsRecorded(t *testing.T) {
	for name, values := range valuesFiles(t) {
		rendered, err := render(t, values)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var out strings.Builder
		for _, template := range slices.Sorted(maps.Keys(rendered)) {
			if text := strings.TrimSpace(rendered[template]); text != "" {
				fmt.Fprintf(&out, "# %s\n", filepath.Base(template))
				if strings.HasSuffix(template, ".txt") {
					text = "# " + strings.ReplaceAll(text, "\n", "\n# ")
				}
				fmt.Fprintf(&out, "%s\n---\n", strings.TrimPrefix(text, "---\n"))
			}
		}
		path := filepath.Join(testdata, name+".yaml")
		if *update {
			if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		recorded, err := os.ReadFile(path)
		if err != nil || string(recorded) != out.String() {
			t.Errorf("%s is not what the chart gives (%v): look at `go -C tools/helm test . -args -update` and the difference", path, err)
		}
	}
}

// Helm's linter has no complaint, not even a recommendation.
func TestChartIsLinted(t *testing.T) {
	version, err := chartutil.ParseKubeVersion(kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range valuesFiles(t) {
		linter := lint.AllWithKubeVersion(chartFolder, values, namespace, version)
		for _, message := range linter.Messages {
			if message.Severity > support.InfoSev { // an icon is recommended
				t.Errorf("%s: %v", name, message)
			}
		}
	}
}

// Every manifest decodes into the type that it names, without a field that the type does not have.
func TestManifestsAreOfKubernetes(t *testing.T) {
	types := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(types), monitoring.AddToScheme(types)); err != nil {
		t.Fatal(err)
	}
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, types, types, json.SerializerOptions{Yaml: true, Strict: true})
	for name, values := range valuesFiles(t) {
		rendered, err := render(t, values)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		seen := map[schema.GroupVersionKind]int{}
		for template, text := range rendered {
			if strings.HasSuffix(template, ".txt") {
				continue
			}
			for _, manifest := range manifests(t, text) {
				object, kind, err := strict.Decode(manifest, nil, nil)
				if err != nil {
					t.Errorf("%s: %s: %v\n%s", name, template, err, manifest)
					continue
				}
				seen[*kind]++
				if _, ok := object.(runtime.Unstructured); ok {
					t.Errorf("%s: %s: nothing is known of %s", name, template, kind)
				}
			}
		}
		t.Logf("%s: %v", name, seen)
		if len(seen) < 4 {
			t.Errorf("%s has %v only", name, seen)
		}
	}
}

// manifests are the documents of a rendered template.
func manifests(t *testing.T, text string) (list [][]byte) {
	t.Helper()
	documents := yamlreader.NewDocumentDecoder(io.NopCloser(strings.NewReader(text)))
	defer documents.Close()
	for {
		buffer := make([]byte, 1<<20)
		n, err := documents.Read(buffer)
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		if document := bytes.TrimSpace(buffer[:n]); len(document) > 0 && !bytes.Equal(document, []byte("---")) {
			list = append(list, document)
		}
	}
}

// What could not run is refused before anything is installed, with what to do.
func TestWrongValuesAreRefused(t *testing.T) {
	for want, change := range map[string]func(values map[string]any){
		"image.repository is empty":       func(v map[string]any) { delete(v, "image") },
		"config.kafka.brokers is empty":   func(v map[string]any) { delete(v["config"].(map[string]any), "kafka") },
		"config.redis.addr is empty":      func(v map[string]any) { v["config"].(map[string]any)["redis"] = map[string]any{"addr": []any{}} },
		"secrets has no auth.pepper_file": func(v map[string]any) { delete(v["secrets"].(map[string]any), "auth.pepper_file") },
		"mode single has its own log":     func(v map[string]any) { v["mode"] = "single" },
		// By the schema:
		"'/mode'":                          func(v map[string]any) { v["mode"] = "both" },
		"additional properties 'kafca'":    func(v map[string]any) { v["config"].(map[string]any)["kafca"] = map[string]any{} },
		"additional properties 'listen'":   func(v map[string]any) { v["config"].(map[string]any)["listen"] = "0.0.0.0:80" },
		"additional properties 'replicas'": func(v map[string]any) { v["produce"] = map[string]any{"replicas": 2} },
		"'/config/retention/price_days'": func(v map[string]any) {
			v["config"].(map[string]any)["retention"] = map[string]any{"price_days": "many"}
		},
		"'/config/redis'": func(v map[string]any) { v["config"].(map[string]any)["redis"].(map[string]any)["password"] = "x" },
		"kafka.password_file": func(v map[string]any) {
			v["secrets"].(map[string]any)["kafka.password_file"] = map[string]any{"name": "a", "key": "b"}
		},
	} {
		values := valuesFiles(t)["split"]
		change(values)
		if _, err := render(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a refusal that says %q", err, want)
		}
	}
}
