#include <curl/curl.h>
#include <stdio.h>

// The smallest program: one GET, whose body libcurl writes to standard output.
int main(int count, char **arguments) {
    CURL *handle = curl_easy_init();
    if (count < 2 || handle == NULL) return 1;
    curl_easy_setopt(handle, CURLOPT_URL, arguments[1]);
    CURLcode code = curl_easy_perform(handle);
    curl_easy_cleanup(handle);
    putchar('\n');
    return code == CURLE_OK ? 0 : 1;
}
