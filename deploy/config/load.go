package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/providers/structs"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

const (
	configFileName = "marketlog.yaml"
	envPrefix      = "MARKETLOG_"
	envConfigFile  = envPrefix + "CONFIG"
)

// testVariables steer tests, by how they begin; a process under test inherits them.
var testVariables = []string{
	envPrefix + "ACK_LOG", envPrefix + "ACK_RECORDS", envPrefix + "ADMISSION", envPrefix + "ARCHIVE_KILLS", envPrefix + "BESIDE", envPrefix + "DAMAGES", envPrefix + "EXPLAIN_SEED",
	envPrefix + "FAULT", envPrefix + "ENGINE_ROUNDS", envPrefix + "FULL_DISKS", envPrefix + "FIGURES",
	envPrefix + "BUDGETED", envPrefix + "FORMAT_ROWS", envPrefix + "FUZZ", envPrefix + "HOUR", envPrefix + "KILL", envPrefix + "RECORDINGS", envPrefix + "SHOTS",
	envPrefix + "SEED", envPrefix + "SOAK", envPrefix + "SOCKETS", envPrefix + "STREAM_READERS",
}

// clientVariables are those that clients read: `marketlog mcp` and the examples. Who exports them runs other commands too.
var clientVariables = []string{ApiKeyVariable, UrlVariable}

// variableSigns are the characters that are in keys and not in names of variables.
var variableSigns = strings.NewReplacer(".", "_", "-", "_")

// flagKeys are the flags that set a key of the configuration.
var flagKeys = map[string]string{
	"data-dir":          "data_dir",
	"listen":            "listen",
	"metrics-listen":    "metrics_listen",
	"sql-listen":        "sql_listen",
	"kafka-listen":      "kafka.listen",
	"clickhouse-listen": "clickhouse.listen",
	"feeds":             "feeds",
	"sim-speed":         "sim.speed",
	"sim-seed":          "sim.seed",
	"sim-rate":          "sim.rate",
	"log-level":         "log.level",
}

// Setting is one key of the configuration as it is, and where it comes from: "default", "file PATH", "environment NAME",
// "flag --NAME" or "running instance". Secret parts of the value are masked.
type Setting struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Origin string `json:"origin"`
}

// Sources are where a configuration comes from, beside the defaults. Later ones win: file, environment, flags.
type Sources struct {
	// File is the path of a YAML file; empty: MARKETLOG_CONFIG, else marketlog.yaml in the data directory, if it is there.
	File  string
	Env   []string // as os.Environ gives it
	Flags *pflag.FlagSet
	// DataDir is asked for the data directory where neither the environment nor the flags name it or a file; nil, or an empty
	// answer, leaves the default. Its origin is "running instance".
	DataDir func() (string, error)
}

// LoadConfig merges the sources and checks the result. The settings are returned even with an error of type Faults, which
// names all wrong and unknown values at once.
func LoadConfig(from Sources) (Config, []Setting, error) {
	l := loader{merged: koanf.New("."), origins: make(map[string]string)}
	if err := l.merged.Load(structs.Provider(DefaultConfig(), "koanf"), nil); err != nil {
		return Config{}, nil, fmt.Errorf("reading the defaults: %w", err)
	}
	l.keys = l.merged.Keys()

	environment, environmentOrigin := l.environment(from.Env)
	flags, flagOrigin := flagLayer(from.Flags)

	path, mustExist := from.File, true
	if path == "" {
		path = lookup(from.Env, envConfigFile)
	}
	if path == "" {
		dir := ""
		for _, layer := range []*koanf.Koanf{environment, flags} {
			if layer.Exists("data_dir") {
				dir = layer.String("data_dir")
			}
		}
		if dir == "" {
			var err error
			if dir, err = l.defaultDir(from.DataDir); err != nil {
				return Config{}, nil, err
			}
		}
		path, mustExist = filepath.Join(dir, configFileName), false
	}
	if err := l.file(path, mustExist); err != nil {
		return Config{}, nil, err
	}
	l.merge(environment, environmentOrigin)
	l.merge(flags, flagOrigin)

	cfg := l.decode()
	// A value that could not be read has left its default in cfg, so that nothing is reported twice.
	values, _ := cfg.Validate().(Faults)
	l.faults = append(l.faults, values...)
	return cfg, l.settings(), SetOrigins(l.faults.Err(), l.origins)
}

// defaultDir is the data directory where nothing names one.
func (l *loader) defaultDir(running func() (string, error)) (string, error) {
	if running == nil {
		return l.merged.String("data_dir"), nil
	}
	dir, err := running()
	if err != nil || dir == "" {
		return l.merged.String("data_dir"), err
	}
	l.origins["data_dir"] = "running instance"
	if err := l.merged.Set("data_dir", dir); err != nil {
		return "", fmt.Errorf("setting data_dir to %s: %w", dir, err)
	}
	return dir, nil
}

type loader struct {
	keys    []string // all known
	merged  *koanf.Koanf
	origins map[string]string
	faults  Faults
}

func (l *loader) file(path string, mustExist bool) error {
	layer := koanf.New(".")
	err := layer.Load(file.Provider(path), yaml.Parser())
	if errors.Is(err, fs.ErrNotExist) && !mustExist {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the configuration in %s: %w", path, err)
	}
	if !mustExist && layer.Exists("data_dir") {
		l.unknown("data_dir", layer.String("data_dir"), "file "+path, "the data directory is known before the file in it is read",
			"use --data-dir, or name the file with --config")
		layer.Delete("data_dir")
	}
	l.merge(layer, func(string) string { return "file " + path })
	return nil
}

// environment maps variables to keys. Since _ replaces a dot and is also itself, only the known keys can decide which.
func (l *loader) environment(environ []string) (layer *koanf.Koanf, origin func(key string) string) {
	name := func(key string) string { return envPrefix + strings.ToUpper(variableSigns.Replace(key)) }
	known := make(map[string]string)
	for _, key := range l.keys {
		known[name(key)] = key
	}
	layer = koanf.New(".")
	// The provider cannot fail: it reads a list in memory.
	_ = layer.Load(env.Provider(".", env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(variable, value string) (string, any) {
			key, ok := known[variable]
			forTests := slices.ContainsFunc(testVariables, func(p string) bool { return strings.HasPrefix(variable, p) })
			if !ok && !forTests && variable != envConfigFile && !slices.Contains(clientVariables, variable) {
				l.unknown(strings.ToLower(strings.TrimPrefix(variable, envPrefix)), value, "environment "+variable, "no setting has this name",
					"see `marketlog config print`; "+name("kafka.listen")+" sets kafka.listen")
			}
			return key, value
		},
	}), nil)
	return layer, func(key string) string { return "environment " + name(key) }
}

func flagLayer(flags *pflag.FlagSet) (layer *koanf.Koanf, origin func(key string) string) {
	layer = koanf.New(".")
	names := make(map[string]string)
	if flags != nil {
		_ = layer.Load(posflag.ProviderWithFlag(flags, ".", nil, func(f *pflag.Flag) (string, any) {
			key := flagKeys[f.Name]
			names[key] = f.Name
			return key, f.Value.String()
		}), nil)
	}
	return layer, func(key string) string { return "flag --" + names[key] }
}

// merge lays one source over the ones before; unknown keys become faults and go no further.
func (l *loader) merge(layer *koanf.Koanf, origin func(key string) string) {
	for _, key := range layer.Keys() {
		value := layer.Get(key)
		section := slices.ContainsFunc(l.keys, func(k string) bool { return strings.HasPrefix(k, key+".") })
		switch {
		case slices.Contains(l.keys, key):
			if value == nil { // `key:` without a value
				continue
			}
			l.origins[key] = origin(key)
			if err := l.merged.Set(key, value); err != nil {
				l.unknown(key, text(value), origin(key), err.Error(), "see `marketlog config print`")
			}
		case section:
			if value != nil && !reflect.DeepEqual(value, map[string]any{}) {
				l.unknown(key, text(value), origin(key), "is a section, not a value", "write its settings below it")
			}
		default:
			l.unknown(key, text(value), origin(key), "no setting has this name", l.suggestion(key))
		}
	}
}

// suggestion names the settings beside an unknown one.
func (l *loader) suggestion(key string) string {
	if slices.Contains(l.keys, key+"_file") {
		return "write it to a file and name that in " + key + "_file"
	}
	for section := key; strings.Contains(section, "."); {
		section = section[:strings.LastIndexByte(section, '.')]
		var beside []string
		for _, k := range l.keys {
			if rest, ok := strings.CutPrefix(k, section+"."); ok {
				name, _, _ := strings.Cut(rest, ".")
				beside = append(beside, name)
			}
		}
		if slices.Sort(beside); len(beside) > 0 {
			return section + " has: " + strings.Join(slices.Compact(beside), ", ")
		}
	}
	return "see `marketlog config print`"
}

func (l *loader) unknown(key, value, origin, problem, remedy string) {
	l.faults = append(l.faults, Fault{Key: key, Value: Mask(key, value), Origin: origin, Problem: problem, Remedy: remedy})
}

// decode reads every known key into its field, each as strictly as its type. koanf's own decoder takes 1.7 for the
// integer 1 and cannot say which key was wrong.
func (l *loader) decode() Config {
	cfg := DefaultConfig()
	eachField(reflect.ValueOf(&cfg).Elem(), "", func(key string, field reflect.Value) {
		value := l.merged.Get(key)
		if err := set(field, value); err != nil {
			l.faults.add(key, text(value), "is wrong", err.Error())
		}
	})
	return cfg
}

// eachField visits the leaves of a configuration; those inside of maps are written back.
func eachField(v reflect.Value, prefix string, visit func(key string, field reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			eachField(v.Field(i), prefix+v.Type().Field(i).Tag.Get("koanf")+".", visit)
		}
	case reflect.Map:
		for _, name := range v.MapKeys() {
			element := reflect.New(v.Type().Elem()).Elem()
			element.Set(v.MapIndex(name))
			eachField(element, prefix+name.String()+".", visit)
			v.SetMapIndex(name, element)
		}
	default:
		visit(strings.TrimSuffix(prefix, "."), v)
	}
}

// set parses value into field; the error is the remedy. From files come YAML's types, from elsewhere strings, where a
// list is separated by commas.
func set(field reflect.Value, value any) error {
	if field.Kind() == reflect.Slice {
		list := []string{}
		switch value := value.(type) {
		case []any:
			for _, element := range value {
				list = append(list, text(element))
			}
		case []string:
			list = append(list, value...)
		case string:
			for part := range strings.SplitSeq(value, ",") {
				if part = strings.TrimSpace(part); part != "" {
					list = append(list, part)
				}
			}
		default:
			return errors.New("use a list")
		}
		field.Set(reflect.ValueOf(list))
		return nil
	}
	if kind := reflect.ValueOf(value).Kind(); kind == reflect.Slice || kind == reflect.Map {
		return errors.New("use one value")
	}
	s := text(value)
	if field.Type() == reflect.TypeFor[time.Duration]() {
		d, err := time.ParseDuration(s)
		if err != nil {
			return errors.New("use a duration such as 90s or 15m")
		}
		field.SetInt(int64(d))
		return nil
	}
	switch field.Kind() {
	case reflect.Bool:
		b, err := strconv.ParseBool(s)
		if err != nil {
			return errors.New("use true or false")
		}
		field.SetBool(b)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return errors.New("use a whole number")
		}
		field.SetInt(n)
	default:
		field.SetString(s)
	}
	return nil
}

func text(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

func (l *loader) settings() []Setting {
	keys := slices.Sorted(slices.Values(l.keys))
	settings := make([]Setting, len(keys))
	for i, key := range keys {
		value := l.merged.Get(key)
		if s, ok := value.(string); ok {
			value = Mask(key, s)
		}
		settings[i] = Setting{Key: key, Value: value, Origin: l.origin(key)}
	}
	return settings
}

func (l *loader) origin(key string) string {
	if origin, ok := l.origins[key]; ok {
		return origin
	}
	return "default"
}

// SetOrigins adds to each fault where its value comes from.
func SetOrigins(err error, origins map[string]string) error {
	faults, ok := err.(Faults)
	if !ok {
		return err
	}
	for i := range faults {
		if faults[i].Origin != "" {
			continue
		}
		faults[i].Origin = "default"
		if origin, ok := origins[faults[i].Key]; ok {
			faults[i].Origin = origin
		}
	}
	return faults
}

// SettingOrigins are the origins of settings, by key.
func SettingOrigins(settings []Setting) map[string]string {
	origins := make(map[string]string, len(settings))
	for _, s := range settings {
		origins[s.Key] = s.Origin
	}
	return origins
}

func lookup(environ []string, name string) string {
	for _, entry := range environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// ReadSecret reads a secret from its file; the last line end is not part of it.
func ReadSecret(key, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", key, err)
	}
	return strings.TrimRight(string(content), "\r\n"), nil
}
