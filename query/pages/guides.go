package pages

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// guide is a page of the documentation.
type guide struct {
	// Name is that of its address, Title its heading, About its first sentence.
	Name, Title, About string
	source             []byte
	// plain is the source as it is served.
	plain []byte
	// rendered is made at the first look.
	rendered func() (template.HTML, error)
}

// guides are the pages of the documentation: index is the first, which lists those in all; byName has those in folders too.
type guides struct {
	files  fs.FS
	index  *guide
	all    []*guide
	byName map[string]*guide
}

const (
	docsPath   = "/docs"
	indexGuide = "README"
)

// unread are not guides for those who use the program.
var unread = map[string]bool{"CHANGELOG": true}

// target is a link in Markdown, by its text and where it leads.
var target = regexp.MustCompile(`!?\[([^\]\n]*)\]\(([^)\s]+)\)`)

// linked is a link in Markdown, by its text.
var linked = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

func readGuides(files fs.FS) (*guides, error) {
	g := &guides{files: files, byName: map[string]*guide{}}
	if files == nil {
		return g, nil
	}
	var names []string
	for _, pattern := range []string{"*.md", "*/*.md"} {
		found, err := fs.Glob(files, pattern)
		if err != nil {
			return nil, fmt.Errorf("listing the guides: %w", err)
		}
		names = append(names, found...)
	}
	for _, file := range names {
		source, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, fmt.Errorf("reading the guides: %w", err)
		}
		page := &guide{Name: strings.TrimSuffix(file, ".md"), source: source}
		page.Title, page.About = headOf(source)
		page.rendered = sync.OnceValues(func() (template.HTML, error) { return g.render(page) })
		g.byName[page.Name] = page
		switch {
		case page.Name == indexGuide:
			g.index = page
		case !unread[page.Name] && !strings.Contains(page.Name, "/"):
			g.all = append(g.all, page)
		}
	}
	for _, page := range g.byName {
		page.plain = g.served(page)
	}
	return g, nil
}

// served is a guide as it was written, but for links to what no server has, such as code: these keep their text.
func (g *guides) served(page *guide) []byte {
	return target.ReplaceAllFunc(page.source, func(link []byte) []byte {
		parts := target.FindSubmatch(link)
		if g.address(page, string(parts[2])) == "" {
			return parts[1]
		}
		return link
	})
}

// headOf is the heading of a guide, and the first sentence after it.
func headOf(source []byte) (title, about string) {
	head, rest, _ := strings.Cut(string(source), "\n")
	paragraph, _, _ := strings.Cut(strings.TrimSpace(rest), "\n\n")
	sentence, _, _ := strings.Cut(strings.Join(strings.Fields(paragraph), " "), ". ")
	if strings.ContainsAny(sentence[:min(1, len(sentence))], "|#`-") {
		sentence = "" // a table, a heading, code or a list
	}
	return strings.TrimPrefix(head, "# "), linked.ReplaceAllString(strings.TrimSuffix(sentence, "."), "$1")
}

// render turns a guide into a page. What is no Markdown in it, such as HTML, is left out.
func (g *guides) render(page *guide) (template.HTML, error) {
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithASTTransformers(util.Prioritized(linker{g, page}, 100))))
	var out bytes.Buffer
	if err := markdown.Convert(page.source, &out); err != nil {
		return "", fmt.Errorf("rendering %s.md: %w", page.Name, err)
	}
	return template.HTML(out.String()), nil // of our own text, without the HTML in it
}

// linker leads links of a guide to the pages of others and to files. What is not served here keeps its text and loses its link.
type linker struct {
	guides *guides
	page   *guide
}

// Transform implements parser.ASTTransformer.
func (l linker) Transform(document *ast.Document, _ text.Reader, _ parser.Context) {
	var lost []*ast.Link
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		link, ok := node.(*ast.Link)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		if to := l.guides.address(l.page, string(link.Destination)); to != "" {
			link.Destination = []byte(to)
		} else {
			lost = append(lost, link)
		}
		return ast.WalkContinue, nil
	})
	for _, link := range lost {
		parent := link.Parent()
		for child := link.FirstChild(); child != nil; {
			next := child.NextSibling()
			parent.InsertBefore(parent, link, child)
			child = next
		}
		parent.RemoveChild(parent, link)
	}
}

// address is where a link of a guide leads on this server, or outside; empty where nothing is.
func (g *guides) address(from *guide, link string) string {
	to, err := url.Parse(link)
	switch {
	case err != nil:
		return ""
	case to.Scheme == "https", link != "" && link[0] == '#':
		return link
	case to.Scheme != "" || to.Host != "" || to.Path == "" || to.Path[0] == '/':
		return ""
	}
	file := path.Join(path.Dir(from.Name), to.Path)
	at := docsPath + "/" + file
	switch name, guide := strings.CutSuffix(file, ".md"); {
	case !guide && !g.has(file), guide && g.byName[name] == nil:
		return ""
	case name == indexGuide:
		at = docsPath
	case guide:
		at = docsPath + "/" + name
	}
	if to.Fragment != "" {
		at += "#" + to.Fragment
	}
	return at
}

// has reports whether a file is served beside the guides.
func (g *guides) has(file string) bool {
	if g.files == nil || !fs.ValidPath(file) {
		return false
	}
	found, err := fs.Stat(g.files, file)
	return err == nil && !found.IsDir()
}

// guideView is a page of the documentation.
type guideView struct {
	*guide
	Text template.HTML
	All  []*guide
}

// sendDocs answers /docs, which needs no session: what the guides say is not a secret.
func (u *Unit) sendDocs(c *fiber.Ctx) error { return u.sendGuide(c, u.guides.index) }

// sendGuideByName answers /docs/{name}, and /docs/{name}.md as it was written; names may have folders. What is no guide, such as an example, is a text.
func (u *Unit) sendGuideByName(c *fiber.Ctx) error {
	file := param(c, "*")
	name, plain := strings.CutSuffix(file, ".md")
	page := u.guides.byName[name]
	switch {
	case page == nil && u.guides.has(file):
		return u.sendBeside(c, file)
	case page == nil:
		return fiber.ErrNotFound
	case plain || !wantsPage(c.Context()):
		return u.sendMarkdown(c, page.plain)
	}
	return u.sendGuide(c, page)
}

// sendBeside answers with a file beside the guides. It is shown as text, whatever is in it.
func (u *Unit) sendBeside(c *fiber.Ctx, file string) error {
	content, err := fs.ReadFile(u.guides.files, file)
	if err != nil {
		return err
	}
	u.secure(c.Context())
	c.Set(fiber.HeaderCacheControl, "public, max-age=300")
	c.Set(fiber.HeaderContentType, fiber.MIMETextPlainCharsetUTF8)
	return c.Send(content)
}

func (u *Unit) sendGuide(c *fiber.Ctx, page *guide) error {
	if page == nil {
		return fiber.ErrNotFound
	}
	ctx := c.Context()
	u.secure(ctx)
	if !wantsPage(ctx) {
		return u.sendMarkdown(c, page.plain)
	}
	ctx.Response.Header.Set(fiber.HeaderVary, "Accept, Accept-Encoding")
	rendered, err := page.rendered()
	if err != nil {
		return err
	}
	return u.show(ctx, http.StatusOK, view{Page: pageDocs, Title: page.Title, About: page.About, Guide: &guideView{page, rendered, u.guides.all}})
}

func (u *Unit) sendMarkdown(c *fiber.Ctx, source []byte) error {
	ctx := c.Context()
	u.secure(ctx)
	ctx.Response.Header.Set(fiber.HeaderCacheControl, "public, max-age=300")
	ctx.Response.Header.SetContentType("text/markdown; charset=utf-8")
	ctx.Response.SetBodyRaw(source)
	return nil
}
