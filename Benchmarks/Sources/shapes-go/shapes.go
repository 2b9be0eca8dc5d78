// Package shapes has the types of the values that the benchmarks decode and encode, for every program in Go.
package shapes

// User is a user of a code host.
type User struct {
	ID        int     `json:"id"`
	Login     string  `json:"login"`
	Name      string  `json:"name"`
	Email     string  `json:"email"`
	AvatarURL string  `json:"avatar_url"`
	Followers int     `json:"followers"`
	SiteAdmin bool    `json:"site_admin"`
	Score     float64 `json:"score"`
}

// Owner is the owner of a Repository.
type Owner struct {
	Login     string `json:"login"`
	ID        int    `json:"id"`
	AvatarURL string `json:"avatar_url"`
	Type      string `json:"type"`
}

// License is the license of a Repository.
type License struct {
	Key  string `json:"key"`
	Name string `json:"name"`
}

// Repository is a repository of a code host.
type Repository struct {
	ID            int      `json:"id"`
	Name          string   `json:"name"`
	FullName      string   `json:"full_name"`
	Private       bool     `json:"private"`
	Owner         Owner    `json:"owner"`
	HTMLURL       string   `json:"html_url"`
	Description   string   `json:"description"`
	Fork          bool     `json:"fork"`
	CreatedAt     string   `json:"created_at"`
	PushedAt      string   `json:"pushed_at"`
	Homepage      *string  `json:"homepage,omitempty"`
	Size          int      `json:"size"`
	Stargazers    int      `json:"stargazers_count"`
	Watchers      int      `json:"watchers_count"`
	Language      *string  `json:"language,omitempty"`
	Forks         int      `json:"forks_count"`
	OpenIssues    int      `json:"open_issues_count"`
	DefaultBranch string   `json:"default_branch"`
	Topics        []string `json:"topics"`
	License       *License `json:"license,omitempty"`
	Score         float64  `json:"score"`
}

// Article is a text with an author.
type Article struct {
	ID     int      `json:"id"`
	Title  string   `json:"title"`
	Author string   `json:"author"`
	Body   string   `json:"body"`
	Tags   []string `json:"tags"`
}

// Sparse is an object of which most members are absent.
type Sparse struct {
	ID     int      `json:"id"`
	Text1  *string  `json:"text1,omitempty"`
	Text2  *string  `json:"text2,omitempty"`
	Text3  *string  `json:"text3,omitempty"`
	Text4  *string  `json:"text4,omitempty"`
	Text5  *string  `json:"text5,omitempty"`
	Text6  *string  `json:"text6,omitempty"`
	Count1 *int     `json:"count1,omitempty"`
	Count2 *int     `json:"count2,omitempty"`
	Count3 *int     `json:"count3,omitempty"`
	Count4 *int     `json:"count4,omitempty"`
	Count5 *int     `json:"count5,omitempty"`
	Count6 *int     `json:"count6,omitempty"`
	Ratio1 *float64 `json:"ratio1,omitempty"`
	Ratio2 *float64 `json:"ratio2,omitempty"`
	Ratio3 *float64 `json:"ratio3,omitempty"`
	Ratio4 *float64 `json:"ratio4,omitempty"`
	Ratio5 *float64 `json:"ratio5,omitempty"`
	Ratio6 *float64 `json:"ratio6,omitempty"`
	Flag1  *bool    `json:"flag1,omitempty"`
	Flag2  *bool    `json:"flag2,omitempty"`
	Flag3  *bool    `json:"flag3,omitempty"`
	Flag4  *bool    `json:"flag4,omitempty"`
	Flag5  *bool    `json:"flag5,omitempty"`
	Flag6  *bool    `json:"flag6,omitempty"`
}
