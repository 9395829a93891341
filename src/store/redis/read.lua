return answer('done', request)
