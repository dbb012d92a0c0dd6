package config

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/archive"
)

// An open segment is read again at each start, so it is short; and each is two files, so it is not shorter.
const (
	segmentPeriod = time.Hour
	segmentBytes  = 16 << 20
)

// archiveAuto archives the embedded log.
const archiveAuto = "auto"

// Archives reports whether the log is archived.
func (c Config) Archives() bool {
	return c.Archive.Enabled == "true" || c.Archive.Enabled == archiveAuto && len(c.Kafka.Brokers) == 0
}

// ArchiveRules reports where segments of the archived topics end.
func (c Config) ArchiveRules() map[string]archive.Rule {
	rules := map[string]archive.Rule{}
	for _, t := range schemas.Topics {
		if t.Archive == schemas.ArchiveNever {
			continue
		}
		rule := archive.Rule{Period: segmentPeriod, Bytes: segmentBytes}
		if len(c.Kafka.Brokers) == 0 {
			// An open segment stays in the broker, which has room for one.
			rule.Bytes = min(rule.Bytes, c.PartitionBounds(t).Near)
		}
		rules[t.Name] = rule
	}
	return rules
}

// Archived is the archived part of the log of some brokers; nil where the log is not archived.
func (c Config) Archived(brokers stream.Config) (*archive.Log, error) {
	if !c.Archives() {
		return nil, nil
	}
	store, err := c.ArchiveStore()
	if err != nil {
		return nil, err
	}
	return archive.NewLog(store, brokers, c.ArchiveRules()), nil
}

// ArchiveStore is where the archive is: in the bucket that archive.bucket names, else in its directory, which need not exist yet.
func (c Config) ArchiveStore() (archive.Store, error) {
	if !c.ArchiveInBucket() {
		return archive.NewDir(c.ArchiveDir()), nil
	}
	bucket := c.Archive.Bucket
	secret, err := ReadSecret("archive.bucket.secret_key_file", bucket.SecretKeyFile)
	if err != nil {
		return nil, err
	}
	return archive.NewBucket(archive.BucketConfig{
		Endpoint: bucket.Endpoint, Bucket: bucket.Name, Prefix: bucket.Prefix, Region: bucket.Region, AccessKey: bucket.AccessKey, SecretKey: secret,
	})
}

// OpenArchive is ArchiveStore for who only looks at it: the error is fs.ErrNotExist where it is a directory that does not exist.
func (c Config) OpenArchive() (archive.Store, error) {
	if c.ArchiveInBucket() {
		return c.ArchiveStore()
	}
	store, err := archive.OpenDir(c.ArchiveDir())
	if err != nil {
		return nil, fmt.Errorf("%w (archive.dir names another directory, archive.bucket a bucket)", err)
	}
	return store, nil
}

// ArchiveInBucket reports whether the archive is in a bucket.
func (c Config) ArchiveInBucket() bool { return c.Archive.Bucket.Name != "" }

// ArchivePlace is where the archive is, for people.
func (c Config) ArchivePlace() string {
	if bucket := c.Archive.Bucket; c.ArchiveInBucket() {
		return fmt.Sprintf("bucket %s at %s", path.Join(bucket.Name, bucket.Prefix), bucket.Endpoint)
	}
	return c.ArchiveDir()
}

// validate checks where the archive is to be.
func (c ArchiveConfig) validate(f *Faults) {
	f.oneOf("archive.enabled", c.Enabled, archiveAuto, "true", "false")
	if b := c.Bytes; b != 0 && b < MinArchiveBytes {
		f.add("archive.bytes", strconv.FormatInt(b, 10), "is too small for segments of all partitions", fmt.Sprintf("use %d (1 GiB) or more, or 0 for the default", MinArchiveBytes))
	}
	bucket := c.Bucket
	if bucket == (BucketConfig{}) {
		return
	}
	if f.required("archive.bucket.name", bucket.Name, "name a bucket that exists, or leave out archive.bucket") && !bucketNames.MatchString(bucket.Name) {
		f.add("archive.bucket.name", bucket.Name, "is not a name of a bucket", "use 3 to 63 small letters, digits, dots and hyphens")
	}
	if c.Dir != "" {
		f.add("archive.dir", c.Dir, "names a directory beside archive.bucket.name, and the archive is in one place", "leave one of them out")
	}
	if f.required("archive.bucket.endpoint", bucket.Endpoint, "name the server, such as https://s3.eu-central-1.amazonaws.com") {
		f.url("archive.bucket.endpoint", bucket.Endpoint, "http", "https")
		if u, err := url.Parse(bucket.Endpoint); err == nil && u.Host != "" && strings.Trim(u.Path, "/") != "" {
			f.add("archive.bucket.endpoint", bucket.Endpoint, "has a path", "name the bucket in archive.bucket.name and what begins its objects' names in archive.bucket.prefix")
		}
	}
	if bucket.Prefix != "" && !fs.ValidPath(bucket.Prefix) {
		f.add("archive.bucket.prefix", bucket.Prefix, "is not a prefix of object names", "use names with slashes between, such as marketlog/production")
	}
	if (bucket.AccessKey == "") != (bucket.SecretKeyFile == "") {
		f.add("archive.bucket.access_key", bucket.AccessKey, "goes with archive.bucket.secret_key_file", "set both, or none to take the usual variables (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)")
	}
}

// bucketNames are those that all servers allow.
var bucketNames = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// ArchiveDir is the directory of the archive, if it is not in a bucket.
func (c Config) ArchiveDir() string {
	if c.Archive.Dir != "" {
		return c.Archive.Dir
	}
	return filepath.Join(c.DataDir, "archive")
}
