SELECT fence FROM resources WHERE resource = ?1
